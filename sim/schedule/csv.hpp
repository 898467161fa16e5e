// Pipeline orders as PyTorch's torch.distributed.pipelining reads and writes them: comma-separated values.
//
// A row is a rank, a cell an action, in the order in which the rank runs them; no head line, no quotes.
//
//   compute only       `<stage><F|B|I|W><micro-batch>` with the global stage, all from 0; an empty cell is an
//                      idle slot and carries no meaning here. A fused pair is `(0F1;1B0)OVERLAP_F_B`.
//   with communication `<s>SEND_F<m>`, `<s>RECV_F<m>`, `<s>SEND_B<m>`, `<s>RECV_B<m>` (the sender's stage in
//                      a SEND, the receiver's in a RECV), and `<s>UNSHARD`, `<s>RESHARD`, `<s>REDUCE_GRAD`.
//                      Where a SEND or a RECV stands is checked against the passes and is not kept.
//   source             pytorch/pytorch, torch/distributed/pipelining/schedules.py. PyTorch matches a prefix
//                      of a cell, so that rubbish behind an action passes there; here it is refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// A problem of a file: its places count from 1; 0 means the file, or the row, as a whole.
struct CellProblem {
  int line = 0;
  int cell = 0;
  int column = 0;  // of the cell's first character
  ScheduleProblem problem;
  friend bool operator==(const CellProblem&, const CellProblem&) = default;
};

// Both from 1.
struct CellPlace {
  int cell = 0;
  int column = 0;
  friend bool operator==(const CellPlace&, const CellPlace&) = default;
};

struct OrderFile {
  Schedule schedule;                          // named "custom", checked
  std::vector<std::vector<CellPlace>> cells;  // [rank][position]
  [[nodiscard]] CellProblem at(int rank, std::size_t position, ScheduleProblem problem) const;
};

// The order of a file, or its mistakes: cells that are no actions, stages on two ranks or on ranks of no
// known placement, and the problems found by check(). At most 20 problems of each sort.
[[nodiscard]] std::variant<OrderFile, std::vector<CellProblem>> parse_csv(std::string_view text);

enum class CsvForm { kComputeOnly, kComputeAndCommunication };

// One line per rank, without idle cells. Bidirectional orders and recompute passes cannot be written.
// requires a valid order.
[[nodiscard]] std::variant<std::string, ScheduleProblem> print_csv(const Schedule& schedule, CsvForm form);

// The first place at which a rank holds more chunk activations than `limit`, for each rank that does.
[[nodiscard]] std::vector<CellProblem> over_limit(const OrderFile& file, int limit);

}  // namespace stagecraft
