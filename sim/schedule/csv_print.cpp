// Writing orders as PyTorch's comma-separated values.
#include "sim/schedule/csv.hpp"
#include "sim/schedule/play.hpp"

namespace stagecraft {
namespace {

std::string cell_of(int stage, const char* word, int micro_batch) {
  return std::to_string(stage) + word + std::to_string(micro_batch);
}

// The rank that a pass sends to or receives from; nothing where its neighbour lives on the same rank or is
// not there.
bool crosses(const Schedule& schedule, const Action& action, int neighbour) {
  if (neighbour < 0 || neighbour >= schedule.stages()) return false;
  return schedule.rank_of(neighbour, action.micro_batch) !=
         schedule.rank_of(action.stage, action.micro_batch);
}

class CsvRow {
 public:
  CsvRow(const Schedule& schedule, CsvForm form) : schedule_(schedule), form_(form) {}

  void add(const std::vector<Action>& order) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool pair = order[i].fused;
      receive(order[i]);
      if (pair) receive(order[i + 1]);
      cell(pair ? "(" + to_string(order[i]) + ";" + to_string(order[i + 1]) + ")OVERLAP_F_B"
                : to_string(order[i]));
      send(order[i]);
      if (!pair) continue;
      send(order[++i]);
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void cell(const std::string& word) { text_ += (text_.empty() ? "" : ",") + word; }

  void receive(const Action& action) {
    if (form_ == CsvForm::kComputeOnly) return;
    const bool forward = action.pass == Pass::kForward;
    if (!forward && !gives_gradient(action.pass)) return;
    if (crosses(schedule_, action, action.stage + (forward ? -1 : 1)))
      cell(cell_of(action.stage, forward ? "RECV_F" : "RECV_B", action.micro_batch));
  }

  void send(const Action& action) {
    if (form_ == CsvForm::kComputeOnly) return;
    const bool forward = action.pass == Pass::kForward;
    if (!forward && !gives_gradient(action.pass)) return;
    if (crosses(schedule_, action, action.stage + (forward ? 1 : -1)))
      cell(cell_of(action.stage, forward ? "SEND_F" : "SEND_B", action.micro_batch));
  }

  const Schedule& schedule_;
  CsvForm form_;
  std::string text_;
};

}  // namespace

std::variant<std::string, ScheduleProblem> print_csv(const Schedule& schedule, CsvForm form) {
  if (schedule.placement == Placement::kBidirectional ||
      schedule.placement == Placement::kBidirectionalUnits) {
    return ScheduleProblem{.message = schedule.name +
                                      " runs both ways, so that a stage lives on two ranks: no row of the "
                                      "CSV could say which copy is meant",
                           .hint = "use a schedule with one copy of the stages, for example dualpipe-v"};
  }
  if (!schedule.flush) {
    return ScheduleProblem{
        .message = schedule.name + " never drains: the CSV holds an iteration that begins and ends",
        .hint = "use a schedule that drains, for example 1f1b"};
  }
  std::string text;
  for (const std::vector<Action>& order : schedule.ranks) {
    for (const Action& action : order) {
      if (action.pass == Pass::kRecompute) {
        return ScheduleProblem{.message = to_string(action) + ": the CSV has no recompute",
                               .hint = "recompute inside the backward, for example with 1f1b"};
      }
    }
    CsvRow row(schedule, form);
    row.add(order);
    text += row.text() + "\n";
  }
  return text;
}

}  // namespace stagecraft
