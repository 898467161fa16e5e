// The models, nodes, fabrics, profiles and traces that scenarios name, each file read once.
//
// A thousand scenarios of a study name the same profile, and reading it costs more than the rest of a
// scenario. A library serves one reader of many scenarios: a file that changes later is not read again, and
// each thread has its own library.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "base/diagnostic.hpp"
#include "base/yaml.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "sim/goodput/trace.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

class Library {
 public:
  explicit Library(DataDirectory data) : data_(std::move(data)) {}

  [[nodiscard]] const DataDirectory& data() const { return data_; }

  // Files as load_yaml_file, load_profile and parse_trace read them, from memory the second time; the value
  // lives as long as the library. nullptr where those report an error: a wrong file is read, and reported,
  // every time that it is named.
  [[nodiscard]] const YamlNode* tree(const std::filesystem::path& file, Diagnostics& diagnostics);
  [[nodiscard]] const HardwareProfile* profile(const std::filesystem::path& file, Diagnostics& diagnostics);
  [[nodiscard]] const Trace* trace(const std::filesystem::path& file, Diagnostics& diagnostics);

 private:
  DataDirectory data_;
  std::map<std::string, YamlNode> trees_;  // parsed files by path, as written
  std::map<std::string, HardwareProfile> profiles_;
  std::map<std::string, Trace> traces_;
};

}  // namespace stagecraft
