// The output of NVIDIA's nccl-tests, text (`all_reduce_perf …`) and JSON (`-J FILE`).
//
// Columns are found by the header of the table, since options add some (-I, -S). Times are microseconds
// whatever the documentation says. A value too wide for its column has lost decimals. The user's environment,
// which the JSON form records, is not kept. A size is the whole buffer, as the tool counts it.
//
//   source  NVIDIA/nccl-tests @a0b82b2: doc/PERFORMANCE.md, src/util.cu, src/common.cu.
#pragma once

#include <optional>
#include <string>
#include <string_view>
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
