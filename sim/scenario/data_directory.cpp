#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "sim/scenario/scenario.hpp"

namespace stagecraft {

namespace {

namespace fs = std::filesystem;

bool holds_data(const fs::path& root) {
  std::error_code ignored;  // what cannot be looked at does not hold our data
  return fs::is_directory(root / "scenarios" / "models", ignored);
}

}  // namespace

std::optional<DataDirectory> DataDirectory::find(const fs::path& executable) {
  if (const char* given = std::getenv("STAGECRAFT_DATA"); given != nullptr && *given != '\0') {
    // The user said where: looking elsewhere would hide a misspelt path.
    return holds_data(given) ? std::optional(DataDirectory{.root = given}) : std::nullopt;
  }
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

std::optional<YamlNode> DataDirectory::load(const fs::path& file, Diagnostics& diagnostics) const {
  const auto given = texts.find(file.string());
  return given == texts.end() ? load_yaml_file(file, diagnostics)
                              : parse_yaml(given->second, given->first, diagnostics);
}

std::vector<std::string> DataDirectory::names(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(root / folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".yaml") names.push_back(at->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace stagecraft
