#include "base/diagnostic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/text_file.hpp"

namespace stagecraft {

namespace {

// "file:line:column", without what is not known; empty for no place at all.
std::string place(const SourceLocation& where) {
  std::string text = printable(place_name(where.file));
  if (where.line > 0) {
    text += fmt::format(":{}", where.line);
    if (where.column > 0) text += fmt::format(":{}", where.column);
  }
  return text;
}

std::string with_place(const SourceLocation& where, std::string_view rest) {
  const std::string prefix = place(where);
  return prefix.empty() ? std::string(rest) : fmt::format("{}: {}", prefix, rest);
}

// The line and a caret below its column. Tabs before the caret are kept, so that it lines up on any terminal,
// and bytes inside a UTF-8 character take no room.
std::string excerpt(const SourceLocation& where, std::string_view source_line) {
  std::string text = fmt::format("\n{:>5} | {}", where.line, source_line);
  if (where.column < 1) return text;
  text += "\n      | ";
  const auto before = std::min(source_line.size(), static_cast<std::size_t>(where.column - 1));
  for (const char c : source_line.substr(0, before)) {
    if (c == '\t')
      text += '\t';
    else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80)
      text += ' ';
  }
  return text + '^';
}

std::string render_all(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!text.empty()) text += '\n';
    text += render(diagnostic);
  }
  return text;
}

}  // namespace

void Diagnostics::error(Diagnostic diagnostic) {
  diagnostic.severity = Severity::kError;
  add(std::move(diagnostic));
}

void Diagnostics::warning(Diagnostic diagnostic) {
  diagnostic.severity = Severity::kWarning;
  add(std::move(diagnostic));
}

void Diagnostics::add_all(const Diagnostics& found) {
  items_.insert(items_.end(), found.items_.begin(), found.items_.end());
}

bool Diagnostics::has_errors() const {
  return error_count() > 0;
}

std::size_t Diagnostics::error_count() const {
  return static_cast<std::size_t>(std::ranges::count(items_, Severity::kError, &Diagnostic::severity));
}

std::vector<Diagnostic> Diagnostics::sorted() const {
  std::vector<Diagnostic> result = items_;
  std::ranges::stable_sort(result, [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.where, a.path) < std::tie(b.where, b.path);
  });
  return result;
}

void Diagnostics::throw_if_errors() const {
  if (has_errors()) throw ScenarioError(sorted());
}

ScenarioError::ScenarioError(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(render_all(diagnostics)), diagnostics_(std::move(diagnostics)) {}

std::string render(const Diagnostic& diagnostic, std::string_view source_line) {
  std::string head = diagnostic.severity == Severity::kError ? "error: " : "warning: ";
  if (!diagnostic.path.empty()) head += printable(diagnostic.path) + ": ";
  std::string text = with_place(diagnostic.where, head + printable(diagnostic.message));
  if (!source_line.empty() && diagnostic.where.line > 0) text += excerpt(diagnostic.where, source_line);
  for (const Note& note : diagnostic.notes)
    text += "\n  note: " + with_place(note.where, printable(note.message));
  if (!diagnostic.hint.empty()) text += "\n  hint: " + printable(diagnostic.hint);
  return text;
}

std::string one_line(const Diagnostic& diagnostic) {
  return diagnostic.path.empty() ? diagnostic.message : diagnostic.path + ": " + diagnostic.message;
}

std::vector<std::string> one_lines(const std::vector<Diagnostic>& diagnostics) {
  std::vector<std::string> lines;
  for (const Diagnostic& diagnostic : diagnostics) lines.push_back(one_line(diagnostic));
  return lines;
}

const Diagnostic* first_error(const std::vector<Diagnostic>& diagnostics) {
  const auto error = std::ranges::find(diagnostics, Severity::kError, &Diagnostic::severity);
  return error == diagnostics.end() ? nullptr : &*error;
}

std::string render_json(const std::vector<Diagnostic>& diagnostics, std::string_view scenario) {
  std::vector<Diagnostic> causes_first = diagnostics;
  std::ranges::stable_sort(causes_first, {}, &Diagnostic::severity);
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.error/1");
  if (!scenario.empty()) json.field("scenario", scenario);
  json.key("errors").begin_array();
  for (const Diagnostic& item : causes_first) {
    json.begin_object()
        .field("code", item.code)
        .field("severity", item.severity == Severity::kError ? "error" : "warning")
        .field("file", place_name(item.where.file))
        .field("line", item.where.line)
        .field("column", item.where.column)
        .field("path", item.path)
        .field("message", item.message)
        .field("hint", item.hint);
    if (!item.notes.empty()) {
      json.key("notes").begin_array();
      for (const Note& note : item.notes) {
        json.begin_object()
            .field("file", place_name(note.where.file))
            .field("line", note.where.line)
            .field("column", note.where.column)
            .field("message", note.message)
            .end_object();
      }
      json.end_array();
    }
    json.end_object();
  }
  json.end_array().end_object();
  return json.str();
}

}  // namespace stagecraft
