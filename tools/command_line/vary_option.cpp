#include "tools/command_line/vary_option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "base/text_file.hpp"

namespace stagecraft {

void refuse_tied_keys(const std::string& varied) {
  const std::string path = varied.substr(0, varied.find('='));
  if (path.find(',') == std::string::npos) return;
  throw UsageError(fmt::format("--vary takes one key, and {} are several", path),
                   "several --vary make a grid; a sweep can tie keys together (docs/sweeps.md)");
}

std::vector<Vary> varied_by(const Arguments& arguments) {
  std::vector<Vary> varied;
  for (const std::string& text : arguments.all("vary")) {
    ParsedVary parsed = parse_vary(text);
    if (!parsed.mistake.empty())
      throw UsageError(fmt::format("--vary {}: {}", text, parsed.mistake), "--vary path.to.key=value,value");
    refuse_tied_keys(parsed.vary.path);
    for (const Vary& other : varied)
      if (const auto twice = varied_twice(parsed.vary.path, other.path))
        throw UsageError(fmt::format("--vary: {} {}", twice->path, twice->message), twice->hint);
    varied.push_back(std::move(parsed.vary));
  }
  return varied;
}

void refuse_more_variants(std::size_t most, const std::vector<std::string>& files,
                          const std::vector<Vary>& varied) {
  std::size_t count = files.size();
  for (const Vary& vary : varied) {
    count *= vary.values.size();
    if (count > most)
      throw UsageError(fmt::format("more than {} variants", with_thousands(static_cast<std::int64_t>(most))),
                       "vary fewer paths or values, or use a sweep");
  }
}

std::vector<VariedPath> varied_paths(const std::vector<Vary>& varied) {
  std::vector<VariedPath> paths;
  for (const Vary& vary : varied) paths.push_back({.path = vary.path, .why = "--vary varies it"});
  return paths;
}

std::vector<Diagnostic> overruled_settings(const Arguments& arguments,
                                           const std::vector<VariedPath>& varied) {
  std::vector<Diagnostic> warnings;
  for (const std::string& text : arguments.all("set")) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || text.substr(equals + 1) == "null") continue;
    const std::string path = text.substr(0, equals);
    const auto over = std::ranges::find_if(
        varied, [&](const VariedPath& one) { return path == one.path || path.starts_with(one.path + "."); });
    if (over != varied.end())
      warnings.push_back({.severity = Severity::kWarning,
                          .code = "no-effect",
                          .where = {.file = "--set " + text},
                          .path = path,
                          .message = "had no effect: " + over->why});
  }
  return warnings;
}

void say_vary(std::vector<Diagnostic>& diagnostics, const std::vector<std::string>& paths) {
  for (Diagnostic& diagnostic : diagnostics)
    for (const std::string& path : paths)
      if (diagnostic.where.file.starts_with("--set " + path + "="))
        diagnostic.where.file.replace(0, 5, "--vary");
}

DataDirectory with_standard_input(const Arguments& arguments, const Session& session) {
  DataDirectory data = session.data;
  if (std::ranges::find(arguments.words(), "-") == arguments.words().end()) return data;
  Diagnostics diagnostics;
  if (std::optional<std::string> text = load_text_file("-", diagnostics)) data.texts["-"] = *std::move(text);
  diagnostics.throw_if_errors();
  return data;
}

}  // namespace stagecraft
