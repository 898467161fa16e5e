#include "tools/validation/published_sets.hpp"

#include <string>

namespace stagecraft {
namespace {

constexpr const char* kSets = "calibrate/validation";
constexpr const char* kMemorySets = "calibrate/validation/memory";
constexpr const char* kSources = "sources";  // among the sets, and none

std::vector<std::filesystem::path> sets_of(const DataDirectory& data, const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : data.names(folder)) {
    if (name != kSources) files.push_back(data.root / folder / (name + ".yaml"));
  }
  return files;
}

}  // namespace

std::vector<std::filesystem::path> published_files(const DataDirectory& data) {
  return sets_of(data, kSets);
}

std::vector<std::filesystem::path> published_memory_files(const DataDirectory& data) {
  return sets_of(data, kMemorySets);
}

std::vector<KnownSource> known_sources(const DataDirectory& data, Diagnostics& diagnostics) {
  return load_known_sources(data.root / kSets / (std::string(kSources) + ".yaml"), diagnostics);
}

}  // namespace stagecraft
