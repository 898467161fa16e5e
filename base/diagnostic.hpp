// What we say to a user whose input is wrong.
//
// A Diagnostic has a place, a key path, both numbers and a way out; all diagnostics of a run are collected
// and reported at once, sorted by place. Only then is one ScenarioError thrown (exit code 2).
//
//   gpt3.yaml:13:13: error: parallelism.pipeline: 7 stages do not divide model.layers = 96
//     hint: 6 or 8 would; or give parallelism.stage_layers
#pragma once

#include <compare>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft {

class KeySurvey;

// A place in a text. Lines and columns count from 1; 0 means "not known" and is not printed.
struct SourceLocation {
  std::string file = {};
  int line = 0;
  int column = 0;

  friend auto operator<=>(const SourceLocation&, const SourceLocation&) = default;
};

// Where each value that the user gave stands, by dotted path; a path that is absent was filled in by default.
using Origins = std::map<std::string, SourceLocation>;

enum class Severity { kError, kWarning };

struct Note {
  SourceLocation where = {};
  std::string message = {};

  friend bool operator==(const Note&, const Note&) = default;
};

struct Diagnostic {
  Severity severity = Severity::kError;
  std::string code = {};  // stable, kebab-case: "unknown-key", "not-divisible", "no-unit", ...
  SourceLocation where = {};
  std::string path = {};  // "parallelism.tensor"; empty when the whole file is meant
  std::string message = {};
  std::string hint = {};  // the way out; may be empty
  std::vector<Note> notes = {};

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

// The collector that loaders and resolvers write into. Order of reporting never changes what is said:
// `sorted()` orders by (file, line, column, path) and keeps the order of arrival for equal places.
class Diagnostics {
 public:
  void add(Diagnostic diagnostic) { items_.push_back(std::move(diagnostic)); }
  void error(Diagnostic diagnostic);       // sets severity, then adds
  void warning(Diagnostic diagnostic);     // sets severity, then adds
  void add_all(const Diagnostics& found);  // behind these, in their order

  [[nodiscard]] bool has_errors() const;
  [[nodiscard]] std::size_t error_count() const;
  [[nodiscard]] const std::vector<Diagnostic>& items() const { return items_; }
  [[nodiscard]] std::vector<Diagnostic> sorted() const;

  // throws ScenarioError with everything collected so far if there is an error among it.
  void throw_if_errors() const;

  // Who writes down what readers ask for (base/key_survey.hpp); nobody, unless a reference is being made. It
  // hangs here because the Diagnostics of a document go wherever its readers go.
  void survey_keys(KeySurvey* survey) { survey_ = survey; }
  [[nodiscard]] KeySurvey* survey() const { return survey_; }

 private:
  std::vector<Diagnostic> items_;
  KeySurvey* survey_ = nullptr;
};

// Errors that are reported after it was made: a check of values may ask whether these were read at all.
class ErrorWatch {
 public:
  explicit ErrorWatch(const Diagnostics& diagnostics)
      : diagnostics_(diagnostics), before_(diagnostics.error_count()) {}
  [[nodiscard]] bool clean() const { return diagnostics_.error_count() == before_; }

 private:
  const Diagnostics& diagnostics_;
  std::size_t before_;
};

// The user's input is wrong. what() is the rendered text of all diagnostics.
class ScenarioError : public std::runtime_error {
 public:
  explicit ScenarioError(std::vector<Diagnostic> diagnostics);
  [[nodiscard]] const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

// One diagnostic as text: `file:line:column: error: path: message`, then indented notes and hint. No trailing
// newline. With `source_line` (may be empty) the line and a caret are shown between message and hint.
[[nodiscard]] std::string render(const Diagnostic& diagnostic, std::string_view source_line = {});

// The path, if there is one, and the message: `parallelism.tensor: 6 does not divide model.heads = 64`.
[[nodiscard]] std::string one_line(const Diagnostic& diagnostic);
[[nodiscard]] std::vector<std::string> one_lines(const std::vector<Diagnostic>& diagnostics);

// nullptr without errors.
[[nodiscard]] const Diagnostic* first_error(const std::vector<Diagnostic>& diagnostics);

// The document `stagecraft.error/1`: JSON on one line, without newline. `scenario` is the one of several that is
// refused, as it was named; empty where there is one question only.
[[nodiscard]] std::string render_json(const std::vector<Diagnostic>& diagnostics,
                                      std::string_view scenario = {});

}  // namespace stagecraft
