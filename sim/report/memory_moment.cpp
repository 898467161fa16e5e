#include "sim/report/memory_moment.hpp"

#include <map>
#include <optional>
#include <tuple>

#include "sim/lower/task_names.hpp"

namespace stagecraft {

void time_peaks(MemoryLedger& ledger, const Program& program, const Timeline& timeline) {
  using Key = std::tuple<Pass, std::int32_t, std::int32_t>;  // pass, stage, micro-batch
  std::map<Key, StageMemory*> wanted;
  for (StageMemory& stage : ledger.stages) {
    if (!stage.moment.action) continue;
    const Action& action = *stage.moment.action;
    wanted[{action.pass, action.stage, action.micro_batch}] = &stage;
  }
  for (std::size_t i = 0; i < program.task_count(); ++i) {
    const TaskId task(static_cast<std::uint32_t>(i));
    const Label& label = program.labels[program.label[task]];
    const std::optional<Pass> pass = pass_of(label);
    if (!pass) continue;
    const auto found = wanted.find({*pass, label.stage, program.micro_batch[task]});
    if (found == wanted.end()) continue;
    // A pass cut into segments starts with its first; replicas run alike.
    found->second->moment.time = timeline.start[task];
    wanted.erase(found);
  }
}

}  // namespace stagecraft
