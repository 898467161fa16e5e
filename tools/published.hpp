// Published measurements, and the scenarios that they are measurements of.
//
// A file (format stagecraft.published/1) holds what all its rows share in the keys of the scenario schema,
// named models, and rows whose keys are scenario keys without their section. Nothing but the row and the
// file's shared part goes into a scenario; the only thing added is the fabric of the cluster that a set was
// measured on (calibrate/validation/clusters.yaml).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/units.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

struct PublishedRow {
  std::string id;
  YamlNode scenario;  // ready for read_scenario
  std::optional<double> iteration_seconds;
  std::optional<double> tokens_per_s_per_gpu;
  std::string skip;  // why the row cannot be run, as its source says
};

struct PublishedSet {
  std::string name;
  std::string title, url;
  std::vector<std::string> assumed;  // scenario keys that the source does not print
  std::vector<PublishedRow> rows;
};

// Set name -> fabric of the cluster that it was measured on.
using SetFabrics = std::map<std::string, std::string>;
[[nodiscard]] SetFabrics load_set_fabrics(const std::filesystem::path& file, Diagnostics& diagnostics);

[[nodiscard]] std::optional<PublishedSet> load_published(const std::filesystem::path& file,
                                                         const SetFabrics& fabrics, Diagnostics& diagnostics);

}  // namespace stagecraft
