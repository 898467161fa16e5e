// The models, nodes, fabrics, profiles, orders and traces that scenarios name, each file read once.
//
// A thousand scenarios of a study name the same profile, and reading it costs more than the rest of a
// scenario. A library serves one reader of many scenarios: a file that changes later is not read again, and
// each thread has its own library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
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

  // Files as load_text_file, load_yaml_file, load_profile and parse_trace read them, from memory the second
  // time; the value lives as long as the library. nullptr where those report an error: a wrong file is read,
  // and reported, every time that it is named.
  [[nodiscard]] const std::string* text(const std::filesystem::path& file, Diagnostics& diagnostics);
  [[nodiscard]] const YamlNode* tree(const std::filesystem::path& file, Diagnostics& diagnostics);
  [[nodiscard]] const HardwareProfile* profile(const std::filesystem::path& file, Diagnostics& diagnostics);
  [[nodiscard]] const Trace* trace(const std::filesystem::path& file, Diagnostics& diagnostics);

  // Hash of the contents of the files that were asked for since forget_asked(), in whatever order and however
  // often.
  [[nodiscard]] std::string contents() const;
  void forget_asked() { asked_.clear(); }

 private:
  template <class T>
  struct Kept {
    T value;
    std::uint64_t contents;
  };
  template <class T>
  using Shelf = std::map<std::string, Kept<T>>;  // by path, as written

  template <class T, class Parse>
  const T* find_or_load(Shelf<T>& shelf, const std::filesystem::path& file, Diagnostics& diagnostics,
                        Parse parse);

  DataDirectory data_;
  Shelf<std::string> texts_;
  Shelf<YamlNode> trees_;
  Shelf<HardwareProfile> profiles_;
  Shelf<Trace> traces_;
  std::set<std::uint64_t> asked_;
};

}  // namespace stagecraft
