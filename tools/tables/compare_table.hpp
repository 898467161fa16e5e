// Variants side by side: as a table in text, Markdown and CSV, and as lines of JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "sim/study/compare.hpp"

namespace stagecraft {

// Compared quantity of the variants: the time of an iteration; where iterations train on different numbers of
// tokens the time per token, and per sample for a model without tokens.
enum class ComparedTime { kIteration, kToken, kSample };
inline constexpr std::string_view kComparedTimeNames[] = {"iteration", "token", "sample"};

struct Comparison {
  std::vector<std::string> paths;  // that vary
  std::vector<Variant> variants;
  std::vector<Outcome> outcomes;  // of each variant

  [[nodiscard]] ComparedTime compared() const;
  // The compared time over that of the first; nullopt where either cannot run or the first takes no time.
  [[nodiscard]] std::optional<double> relative_time(std::size_t variant) const;
};

// Names of the variants: the file where there are several, and the varied values.
struct VariantNames {
  explicit VariantNames(const Comparison& comparison);
  std::vector<std::string> titles;                // "scenario", "schedule"
  std::vector<std::vector<std::string>> columns;  // of each variant, one for each title
  std::size_t keys = 0;                           // that vary

  [[nodiscard]] std::string spoken(std::size_t variant) const;  // "zb-h1", "tensor 2"; of several keys "2 1"
};

// The figures of the variants as cells, the header first; of each column where it stands.
struct VariantCells {
  std::vector<Align> aligns;
  std::vector<std::vector<std::string>> rows;
};
[[nodiscard]] VariantCells cells_of(const Comparison& comparison);

// One sentence for each variant after the first: the extra time of its iteration, and the parts of the
// breakdown behind it, largest first, with their shares of the difference. A dozen at most, and a sentence
// about the rest.
[[nodiscard]] std::vector<std::string> explanations(const Comparison& comparison);

// The fastest variant that fits and meets its assertions, by the compared time, and the one with the least
// memory. Where the variants run on different numbers of GPUs also these numbers, and the most throughput per
// GPU.
[[nodiscard]] std::vector<std::string> best_of(const Comparison& comparison);
// For each variant why it cannot run, or its missed assertions; empty where neither.
[[nodiscard]] std::vector<std::string> reasons_of(const Comparison& comparison);

// A row for each variant, the best ones, and the causes of differences from the first. Variants that cannot
// run are rows, with the reason below. A column marks missed assertions, where there are some. Two columns
// have the GPUs and the throughput per GPU, where variants run on different numbers of GPUs.
[[nodiscard]] std::string render_text(const Comparison& comparison);
// The comparison for a page: a GitHub table, and lists in place of the lines below it.
[[nodiscard]] std::string render_markdown(const Comparison& comparison);
// RFC 4180: a header, and a line for each variant with numbers in full; `part_moved_s` behind each part of
// the breakdown is what it has more than the first variant's. Empty where a variant cannot run; the reason says
// why, or which assertions it misses.
[[nodiscard]] std::string render_csv(const Comparison& comparison);

// One document, without its line end: that of `run --json`, or of its errors, with the scenario, the varied
// values, the time relative to the first variant and of what it is (relative_per), and the parts that moved,
// largest first (null where there is none). `reasons`, as of `run`, where it misses an assertion.
[[nodiscard]] std::string render_json(const Comparison& comparison, std::size_t variant);

}  // namespace stagecraft
