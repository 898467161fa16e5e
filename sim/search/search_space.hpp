// The space that a search looks through: which paths of a scenario vary, and over what.
//
//   search:                                   # of a scenario; every key may be left out
//     vary:
//       parallelism.tensor: [1, 2, 4, 8]       # these values
//       parallelism.pipeline: all              # every number that divides
//       parallelism.virtual_stages: {at_most: 8}           # the same, up to a limit
//       parallelism.context: {tokens_each: 4096}           # the same, with so many tokens a rank at least
//       offload.weights: [0, 1]                # any key of a scenario may vary, by values, mappings included
//     fix: [schedule]                          # stays what the scenario says
//     gpus: 256..4096                          # 256, 512, … 4096; or a list; left out: those of the cluster
//     batch: exact                             # or at-most: the largest multiple of `data` up to it
//     stages: even                             # or uneven: layers that do not divide are spread
//     price: 2 USD/h                           # of a GPU
//
// The default space is in scenarios/search/space.yaml, with the reasons. A scenario's `search` replaces it
// path by path, and command-line options replace that; `training: [{…}, {…}]` replaces all that varies below
// `training`. Only schedules that the scenario's software runs are tried (software_orders.hpp). For abstract
// stages fewer keys vary (stage_axes.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/yaml.hpp"

namespace stagecraft {

struct SearchAxis {
  std::string path;
  std::vector<YamlNode> values = {};  // values in order; empty: every number that divides
  std::int64_t at_most = 0;           // largest of them; 0: no limit
  std::int64_t tokens_each = 0;       // fewest tokens per rank, for parallelism.context
  bool usual = false;                 // belongs to the default space
  bool loaded = false;                // its values are loaded, though the path could be set in place
  SourceLocation where = {};

  [[nodiscard]] bool all() const { return values.empty(); }
};

// Price of a GPU.
struct GpuPrice {
  double per_hour = 0;
  std::string currency;
};

struct SearchSpace {
  std::vector<SearchAxis> axes;  // no path twice
  std::vector<int> gpus = {};    // ascending; empty: those of the scenario's cluster
  SourceLocation gpus_where = {};
  bool batch_at_most = false;
  bool uneven_stages = false;
  bool fixed_stage_layers = false;  // plans of other stages than the scenario's split has are refused
  std::optional<GpuPrice> price = {};
  std::vector<std::string> kept = {};  // usual axes that the model does not let vary (stage_axes.hpp)

  [[nodiscard]] const SearchAxis* find(std::string_view path) const;
};

// Options of the command line, as they were written.
struct SearchWords {
  std::vector<std::string> vary = {};  // "parallelism.tensor=1,2,4"
  std::vector<std::string> fix = {};
  std::optional<std::string> gpus = {}, price = {};
};

inline constexpr const char* kDefaultSpace = "scenarios/search/space.yaml";  // in the data directory

// `defaults` is the file of the default space, `section` the scenario's `search`, which may be null. Reports
// all that is wrong, and leaves it out of the space.
[[nodiscard]] std::optional<SearchSpace> load_search_space(const std::filesystem::path& defaults,
                                                           const YamlNode* section, const SearchWords& words,
                                                           Diagnostics& diagnostics);

// "256..4096": doubling from the first on, and the last, be it a doubling or not; "8,16,40". Empty when it is
// neither.
[[nodiscard]] std::vector<int> parse_gpu_counts(std::string_view text);
// "2 USD/h", "1.5EUR/h".
[[nodiscard]] std::optional<GpuPrice> parse_gpu_price(std::string_view text);

}  // namespace stagecraft
