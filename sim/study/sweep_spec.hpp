// A sweep as defined by its file: a base scenario, the varied paths, and the wanted points.
//
//   stagecraft: 1
//   base: gpt3-175b-1024xA100.yaml            # relative to this file; or a scenario written out here
//   vary:
//     parallelism.tensor: [1, 2, 4, 8]         # one value after the other
//     cluster.nodes, training.global_batch_size: [[64, 768], [128, 1536]]      # zipped: they change together
//     overlap.gradients: {from: 1 ms, to: 1 s, points: 7, scale: log}          # a range; scale: linear else
//     training.micro_batch_size: {from: 1, to: 64, factor: 2}                  # or step: 1
//   where: "tensor * pipeline <= 64"           # or a list, which all must hold
//   sample: {method: latin-hypercube, points: 200, seed: 7}                    # in place of the whole grid
//
// The last path changes fastest. With `sample` a range may leave `points` out and is then drawn from, between
// its ends; whole ends give whole numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/yaml.hpp"
#include "sim/scenario/library.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/study/constraint.hpp"

namespace stagecraft {

// Range that a sample draws from: `from` at 0, `to` at 1, both included.
struct SweepRange {
  double from = 0, to = 0;
  bool logarithmic = false;
  bool whole = false;     // whole numbers only
  std::string unit = {};  // " ms"; empty for bare numbers

  // The value at `share` in [0, 1], as YAML text.
  [[nodiscard]] std::string at(double share) const;
  // The value drawn with `share` in [0, 1): as at(), but each whole number has an interval of equal width,
  // the ends included.
  [[nodiscard]] std::string drawn(double share) const;

  friend bool operator==(const SweepRange&, const SweepRange&) = default;

 private:
  [[nodiscard]] double between(double low, double high, double share) const;
  [[nodiscard]] std::string text(double value) const;
};

// One direction of the grid: a path, or several that change together.
struct SweepAxis {
  std::vector<std::string> paths;
  std::vector<std::vector<YamlNode>> choices;  // each has a value for each path
  std::optional<SweepRange> range = {};        // range of one path, in place of choices
  SourceLocation where = {};
};

enum class SampleMethod : std::uint8_t { kRandom, kLatinHypercube };

struct Sampling {
  SampleMethod method = SampleMethod::kRandom;
  std::int64_t points = 0;
  std::uint64_t seed = 1;
};

struct SweepSpec {
  std::string source;  // the path as it was given
  std::string name;    // free text; the file's stem when absent
  ScenarioTree base;
  std::vector<SweepAxis> axes;
  std::vector<Constraint> where;
  std::optional<Sampling> sampling = {};

  [[nodiscard]] std::vector<std::string> paths() const;  // all varied paths, in the order of the file
};

// `word` is a file, or the name of an installed sweep; so is the base, of a scenario. `overrides` as in --set,
// on the base. Reports every mistake in the sweep's file, and a base that is neither. Mistakes of points are
// reported with the points. `seed`: of a sample that gives none.
[[nodiscard]] std::optional<SweepSpec> load_sweep(const std::filesystem::path& word,
                                                  std::span<const std::string> overrides, Library& library,
                                                  Diagnostics& diagnostics, std::uint64_t seed = 1);

}  // namespace stagecraft
