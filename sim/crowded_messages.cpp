#include "sim/crowded_messages.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "base/text.hpp"
#include "sim/lower/task_names.hpp"

namespace stagecraft {

std::optional<std::string> word_on_crowded_messages(const Program& program, const Timeline& timeline,
                                                    int ranks) {
  if (!program.flows.empty()) return std::nullopt;
  IdVector<LabelId, bool> is_message;
  for (const Label& label : program.labels) {
    const auto does = beside_task(label.name);
    is_message.push_back(does == BesideTask::kSendForward || does == BesideTask::kSendBackward);
  }
  // Messages of one boundary and direction have one label. Those of a rank are in the order of their starts.
  struct Last {
    std::uint32_t resource = 0;
    Duration end{};
  };
  IdVector<LabelId, Last> last(program.labels.size());
  for (std::uint32_t r = 0; r < program.resources.size(); ++r) {
    if (program.resources[ResourceId(r)].kind == ResourceKind::kStream) continue;  // one at a time
    for (std::uint32_t t = program.resource_begin[r]; t < program.resource_begin[r + 1]; ++t) {
      const TaskId task(t);
      if (!is_message[program.label[task]]) continue;
      Last& before = last[program.label[task]];
      if (before.resource == r && timeline.start[task] < before.end)
        return fmt::format(
            "network: messages of {} from pipeline rank {} are under way to the same rank at once, each at "
            "full speed; on one link they take longer: try `network: flow`",
            human(program.duration[task]), program.resources[ResourceId(r)].rank % ranks);
      before = {.resource = r, .end = timeline.end[task]};
    }
  }
  return std::nullopt;
}

}  // namespace stagecraft
