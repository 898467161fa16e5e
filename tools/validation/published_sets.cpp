#include "tools/validation/published_sets.hpp"

namespace stagecraft {

std::vector<std::filesystem::path> published_files(const DataDirectory& data, const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : data.names(folder)) {
    if (name != "sources") files.push_back(data.root / folder / (name + ".yaml"));
  }
  return files;
}

std::vector<KnownSource> known_sources(const DataDirectory& data, Diagnostics& diagnostics) {
  return load_known_sources(data.root / "calibrate/validation/sources.yaml", diagnostics);
}

}  // namespace stagecraft
