#include "sim/scenario/trace_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <vector>

#include "base/text.hpp"

namespace stagecraft {

namespace {

namespace fs = std::filesystem;

fs::path shelf(const PresetPlaces& places) {
  return places.library.data().root / "scenarios/traces";
}

std::optional<fs::path> find(const std::string& name, const PresetPlaces& places) {
  if (name.empty() || name.find('\0') != std::string::npos) return std::nullopt;
  std::error_code ignored;  // an unreadable path cannot be read either
  std::vector<fs::path> candidates{places.folder / name};
  if (name.find('/') == std::string::npos) {
    candidates.push_back(shelf(places) / name);
    candidates.push_back(shelf(places) / (name + ".csv"));
  }
  for (const fs::path& file : candidates)
    if (fs::is_regular_file(file, ignored)) return file;
  return std::nullopt;
}

std::vector<std::string> names_on(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".csv") names.push_back(at->path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace

const Trace* find_trace(YamlMap& map, const char* key, const std::string& name, const PresetPlaces& places) {
  const std::optional<fs::path> file = find(name, places);
  if (!file) {
    const auto nearest = nearest_name(name, names_on(shelf(places)));
    map.error(key, "no-such-file", fmt::format("{} is not a file", in_quotes(name)),
              nearest ? fmt::format("did you mean '{}'?", *nearest)
                      : "a path is relative to the scenario; a bare name may be a file of scenarios/traces");
    return nullptr;
  }
  return places.library.trace(*file, map.diagnostics());
}

}  // namespace stagecraft
