// A row of a sweep: one point as a line of JSON, and the code that makes it.
//
//   {"schema": "stagecraft.sweep/1", "sweep": "…", "point": 0, "points": 24, "vary": {"parallelism.tensor":
//   8},
//    "hash": "…", "feasible": true, "reasons": [], … the keys of `run --json` …, "goodput": {…}}
//
//   sweep     hash of all that decides the rows: the base with its overrides, what varies, the files that
//             these name, the seed
//   hash      of the resolved scenario and its files; null where it does not resolve. Points of one hash
//             have one result
//   goodput   the document of `goodput --json`, where the scenario has `failures`; without its inputs, which take
//             twenty more runs, and without what it was made from
//   feasible  it ran, fits into memory and keeps what `assert` promises. Else `reasons` says why not: what
//             could not be resolved, what is missed; what ran has its figures all the same
//
// A row is a function of the sweep and the point, independent of thread, process and machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/diagnostic.hpp"
#include "sim/report/goodput_report.hpp"
#include "sim/report/result_keys.hpp"
#include "sim/scenario/library.hpp"
#include "sim/study/payload_cache.hpp"
#include "sim/study/shared_warnings.hpp"
#include "sim/study/sweep_points.hpp"
#include "sim/study/sweep_spec.hpp"

namespace stagecraft {

struct RowOptions {
  std::uint64_t seed = 1;
  ResultDetail detail = ResultDetail::kBrief;
};

// Input of all rows; immutable, shared by all threads.
struct Sweep {
  SweepSpec spec;
  SweepPoints points;
  RowOptions options;
  std::string hash;
};

// Loads and enumerates. nullopt where it cannot; reports all that is wrong.
[[nodiscard]] std::optional<Sweep> prepare_sweep(const std::filesystem::path& file,
                                                 std::span<const std::string> overrides,
                                                 const RowOptions& options, Library& library,
                                                 Diagnostics& diagnostics);

// The line of a point up to its varied values: the same however the point turns out.
[[nodiscard]] std::string row_head(const Sweep& sweep, std::size_t point);

// Makes rows. One for each thread: files of models and profiles are read once. `warnings` gets those that the
// points of rows are loaded with.
class PointRunner {
 public:
  PointRunner(const Sweep& sweep, const DataDirectory& data, PayloadCache& cache,
              SharedWarnings* warnings = nullptr)
      : sweep_(sweep), library_(data), cache_(cache), warnings_(warnings) {}

  // The whole line, without its line end. Never throws: a point that cannot run, and one that meets a bug of
  // ours, is a row as well.
  [[nodiscard]] std::string row(std::size_t point);
  // The hash of the resolved scenario; nullopt where it does not resolve.
  [[nodiscard]] std::optional<std::string> hash(std::size_t point);

 private:
  std::optional<Scenario> load(std::size_t point, Diagnostics& diagnostics);
  [[nodiscard]] std::string hash_of(const Scenario& loaded) const;  // the one that was loaded last
  [[nodiscard]] GoodputReport goodput(const Scenario& scenario) const;
  [[nodiscard]] std::string payload(const Scenario& scenario) const;

  const Sweep& sweep_;
  Library library_;
  PayloadCache& cache_;
  SharedWarnings* warnings_;
};

}  // namespace stagecraft
