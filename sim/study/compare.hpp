// Compares scenarios: the variants, and the outcome of each.
//
//   variants  every file with every choice of one value for each varied path: files outermost, the last path
//             changes fastest.
//   outcomes  in the order of the variants, the same bits on any number of threads. A variant that cannot run
//             has diagnostics in place of a report.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/lower/category.hpp"
#include "sim/report/report.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// One path of a scenario and the values that it takes, as YAML text.
struct Vary {
  std::string path;
  std::vector<std::string> values;

  friend bool operator==(const Vary&, const Vary&) = default;
};

struct ParsedVary {
  Vary vary;
  std::string mistake;  // empty, or why the text is none: "there is no '=' in it"
};

// "parallelism.tensor=1,2,4". Commas inside brackets, braces and quotes belong to a value.
[[nodiscard]] ParsedVary parse_vary(std::string_view text);

// Of a path that varies by two keys, of which one overrules the other: the same twice, or a part of the other.
struct VariedTwice {
  std::string path, message, hint;  // "schedule.name", "is varied twice, by schedule as well"
};
[[nodiscard]] std::optional<VariedTwice> varied_twice(std::string_view one, std::string_view other);

struct Variant {
  std::string file;
  std::vector<std::string> overrides;  // assignments as in --set, in order
  std::vector<std::string> values;     // one for each varied path

  friend bool operator==(const Variant&, const Variant&) = default;
};

// `overrides` come first, the varied values after them. No paths: each file once.
[[nodiscard]] std::vector<Variant> variants_of(const std::vector<std::string>& files,
                                               const std::vector<std::string>& overrides,
                                               const std::vector<Vary>& varied);

struct Outcome {
  std::optional<Scenario> scenario = {};     // absent when it did not load
  std::optional<Report> report = {};         // absent when it cannot run
  bool stopped = false;                      // it cannot because a node dies in the iteration
  int live_chunks = 0;                       // activations of the worst rank at once, in chunks
  std::vector<Diagnostic> diagnostics = {};  // warnings, and the errors of one that cannot run
  std::vector<Diagnostic> missed = {};       // assertions of the scenario that do not hold of the report
};

// throws what simulating throws for a bug of ours; of several the first variant's.
[[nodiscard]] std::vector<Outcome> simulate_variants(const std::vector<Variant>& variants,
                                                     const DataDirectory& data, int threads);

// A part of the breakdown in two results.
struct MovedPart {
  Category part = Category::kForward;
  Duration first{}, here{};

  [[nodiscard]] Duration difference() const { return here - first; }
  friend bool operator==(const MovedPart&, const MovedPart&) = default;
};

// The parts that differ, largest difference first (of equals in the order of the breakdown). Their
// differences add up to that of the iteration times, to the nanosecond, because the parts do.
[[nodiscard]] std::vector<MovedPart> moved_parts(const Report& first, const Report& here);

}  // namespace stagecraft
