#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "base/text_file.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

namespace {

namespace fs = std::filesystem;

// Empty is as good as not set.
std::optional<fs::path> said_root() {
  const char* given = std::getenv("STAGECRAFT_DATA");
  return given != nullptr && *given != '\0' ? std::optional<fs::path>(given) : std::nullopt;
}

bool holds_data(const fs::path& root) {
  std::error_code ignored;  // an unreadable path does not hold our data
  return fs::is_directory(root / "scenarios" / "models", ignored);
}

}  // namespace

std::optional<DataDirectory> DataDirectory::find(const fs::path& executable) {
  // The user said where: looking elsewhere would hide a misspelt path.
  if (const auto given = said_root())
    return holds_data(*given) ? std::optional(DataDirectory{.root = *given}) : std::nullopt;
  std::error_code error;
  fs::path folder = fs::weakly_canonical(executable, error);
  if (error) folder = executable;
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    if (holds_data(folder)) return DataDirectory{.root = folder};
    const fs::path shared = folder / "share" / "stagecraft";
    if (holds_data(shared)) return DataDirectory{.root = shared};
  }
  return std::nullopt;
}

Diagnostic DataDirectory::missing(std::string_view who) {
  const auto given = said_root();
  if (!given)
    return {.code = "usage",
            .message = fmt::format("the models, nodes and profiles that belong to {} are not beside it", who),
            .hint = "set STAGECRAFT_DATA to the folder that holds scenarios/ and calibrate/"};
  std::error_code ignored;  // an unreadable path is no folder for us
  return {
      .code = "usage",
      .message = fmt::format(
          "STAGECRAFT_DATA is '{}', {}", given->string(),
          fs::is_directory(*given, ignored) ? "where there is no scenarios/models" : "which is no folder"),
      .hint = "it is the folder that holds scenarios/ and calibrate/; unset, they are looked for beside " +
              std::string(who)};
}

std::optional<YamlNode> DataDirectory::load(const fs::path& file, Diagnostics& diagnostics) const {
  const auto given = texts.find(file.string());
  const auto text = given == texts.end() ? load_text_file(file, diagnostics) : std::optional(given->second);
  return text ? parse_flawed_yaml(*text, place_name(file), diagnostics) : std::nullopt;
}

std::vector<std::string> DataDirectory::names(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(root / folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".yaml") names.push_back(at->path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace stagecraft
