// The output of NVIDIA's nccl-tests, text (`all_reduce_perf …`) and JSON (`-J FILE`).
//
// Columns are found by the header of the table, since options add some (-I, -S). Times are microseconds
// whatever the documentation says. A value too wide for its column has lost decimals. The user's environment,
// which the JSON form records, is not kept. A size is the whole buffer, as the tool counts it.
//
//   source  NVIDIA/nccl-tests @a0b82b2: doc/PERFORMANCE.md, src/util.cu, src/common.cu.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"
#include "calibrate/fit/curve_fits.hpp"

namespace stagecraft {

struct NcclRow {
  double bytes = 0;
  double seconds = 0;  // out of place
};

struct NcclRun {
  std::optional<CollectiveKind> kind;  // older text does not say
  std::string program;                 // "all_reduce_perf", where it says so
  int ranks = 0;                       // ranks of one group
  int nodes = 0;
  std::string device;
  std::string nccl_version;
  std::vector<NcclRow> rows;             // size above 0; a size measured again stands again
  std::optional<double> launch_seconds;  // time of size 0, the smallest
};

// Errors, each with its line: host times (cputime), wrong results (#wrong above 0, values out of bounds), no
// ranks, a rank or a heading twice (two runs in a file), a table without rows, JSON of another shape,
// impossible measurements. Warning: a run without its end. nullopt after an error.
[[nodiscard]] std::optional<NcclRun> read_nccl_tests(std::string_view text, const std::string& name,
                                                     Diagnostics& diagnostics);

// "all_reduce_perf", "alltoall", "send_receive", "all-gather", …; nullopt for kinds that a profile does not have
// (gather, scatter).
[[nodiscard]] std::optional<CollectiveKind> nccl_collective(std::string_view name);

namespace detail {

// Limits of a plausible measurement: a buffer within some memory, a call of a nanosecond to eleven days.
inline constexpr std::int64_t kMaxNcclBytes = std::int64_t{1} << 50;
[[nodiscard]] constexpr bool is_nccl_time(double microseconds) {
  return microseconds >= 1e-3 && microseconds <= 1e12;
}

// The ranks that a file lists.
class NcclRanks {
 public:
  // false: this rank was listed before.
  [[nodiscard]] bool add(const std::string& group, std::int64_t rank, const std::string& host);
  // Sets ranks and nodes. The message where they are no run to fit.
  [[nodiscard]] std::optional<std::string> close(NcclRun& run) const;

 private:
  std::set<std::pair<std::string, std::int64_t>> seen_;
  std::map<std::string, int> ranks_;
  std::map<std::string, std::set<std::string>> hosts_;
};

// Size 0 is no row, but the time of a launch.
void add_nccl_row(NcclRun& run, const NcclRow& row);

// NCCL_VERSION as people write it: 22809 is 2.28.9, 2708 (before 2.9) is 2.7.8.
[[nodiscard]] std::string nccl_version_text(std::int64_t version);

[[nodiscard]] std::optional<NcclRun> read_nccl_json(std::string_view text, const std::string& name,
                                                    Diagnostics& diagnostics);

}  // namespace detail

// What the times cannot give: constants where the sizes are fewer than kMinCollectivePoints, a bandwidth where
// none is large enough to show one. Warnings without a place.
[[nodiscard]] std::vector<Diagnostic> missing_for_a_fit(const NcclRun& run);

// That no price uses a curve over several nodes, and what it says of a fabric instead. A warning without a
// place; nullopt inside a node.
[[nodiscard]] std::optional<Diagnostic> curve_without_effect(const NcclRun& run);

// The entry for `collectives:` of a profile, with a comment on each value and a verdict on the measurement.
// Where something is missing for a fit: what it is, the times, and inside a node those for
// `collective_points:`.
//   requires  a kind.
[[nodiscard]] std::string to_fragment(const NcclRun& run, const std::string& name);

}  // namespace stagecraft
