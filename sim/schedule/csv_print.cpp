// Writing orders as PyTorch's comma-separated values.
#include "sim/schedule/calls.hpp"
#include "sim/schedule/csv.hpp"

namespace stagecraft {
namespace {

std::string word_of(const PeerTransfer& transfer) {
  const char* const word =
      transfer.send ? (transfer.gradient ? "SEND_B" : "SEND_F") : (transfer.gradient ? "RECV_B" : "RECV_F");
  return std::to_string(transfer.stage) + word + std::to_string(transfer.micro_batch);
}

class CsvRow {
 public:
  CsvRow(const Schedule& schedule, CsvForm form) : schedule_(schedule), form_(form) {}

  void add(const std::vector<Action>& order) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool pair = order[i].fused;
      message(order[i], false);
      if (pair) message(order[i + 1], false);
      cell(pair ? "(" + to_string(order[i]) + ";" + to_string(order[i + 1]) + ")OVERLAP_F_B"
                : to_string(order[i]));
      message(order[i], true);
      if (pair) message(order[++i], true);
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void cell(const std::string& word) { text_ += (text_.empty() ? "" : ",") + word; }

  void message(const Action& action, bool send) {
    if (form_ == CsvForm::kComputeOnly) return;
    if (const auto transfer = transfer_of(schedule_, action, send)) cell(word_of(*transfer));
  }

  const Schedule& schedule_;
  CsvForm form_;
  std::string text_;
};

}  // namespace

std::variant<std::string, ScheduleProblem> print_csv(const Schedule& schedule, CsvForm form) {
  if (schedule.places().copies() > 1) {
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
