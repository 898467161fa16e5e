#include "tools/validation/published_sets.hpp"

namespace stagecraft {

std::vector<std::filesystem::path> published_files(const DataDirectory& data, const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : data.names(folder)) {
    if (name != "clusters") files.push_back(data.root / folder / (name + ".yaml"));
  }
  return files;
}

SetFabrics set_fabrics(const DataDirectory& data, Diagnostics& diagnostics) {
  return load_set_fabrics(data.root / "calibrate/validation/clusters.yaml", diagnostics);
}

}  // namespace stagecraft
