// Memory as predicted against memory as measured, row by row of a published set.
//
//   A figure is compared with its own kind only: the allocator's high water with allocated(), its reserved
//   blocks with reserved(), what the device shows (nvidia-smi) with peak(). Runs that ended for want of
//   memory have no figure and are checked by the verdict.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "sim/accuracy/statistics.hpp"
#include "sim/lower/memory_ledger.hpp"
#include "sim/scenario/library.hpp"
#include "tools/validation/published.hpp"
#include "tools/validation/score.hpp"

namespace stagecraft {

struct MemoryScore {
  std::string id;
  Bytes predicted;                // of the set's kind
  std::optional<Bytes> measured;  // absent: only the verdict was published
  Verdict verdict = Verdict::kFits;
  bool out_of_memory = false;  // how the run ended
  Bytes capacity;

  [[nodiscard]] std::optional<double> error() const;  // predicted / measured - 1
  // An out-of-memory row predicted to run, or a row that ran and left 5 % of the card predicted not to.
  [[nodiscard]] bool wrong_verdict() const;
};

struct MemoryScores {
  std::string name, title;  // of the set
  MemoryFigure figure = MemoryFigure::kDevice;
  std::vector<MemoryScore> rows;
  std::vector<SkippedRow> skipped;
  std::vector<std::string> profile_hashes{};  // of each scored row

  [[nodiscard]] ErrorSummary summary() const;  // of the rows with a figure; `worst` is a place in `rows`
  [[nodiscard]] int wrong_verdicts() const;
};

// Rows of `set` that are known to have run, from a memory figure or a time, or to have run out of memory.
[[nodiscard]] MemoryScores score_memory(const PublishedSet& set, Library& library);

void print_memory_text(const MemoryScores& scores, bool quiet, std::ostream& out);
[[nodiscard]] std::string memory_json(const MemoryScores& scores);

}  // namespace stagecraft
