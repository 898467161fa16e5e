#include "base/check.hpp"
#include "sim/lower/lowering.hpp"

namespace stagecraft {

// A dead rank stops its own tasks, and the collectives of its copies, which have lost a member.
void Lowering::add_speeds() {
  for (const RankSpeed& change : options_.speeds) {
    const RankTasks& tasks = tasks_of(change.copy, change.rank);
    builder_.add_speed_change({.time = change.time, .resource = tasks.compute, .speed = change.speed});
    if (change.speed > 0) continue;
    builder_.add_speed_change({.time = change.time, .resource = tasks.send, .speed = 0});
    for (int copy = 0; copy < options_.replicas; ++copy) {
      const RankTasks& of_copy = tasks_of(copy, change.rank);
      builder_.add_speed_change({.time = change.time, .resource = of_copy.data, .speed = 0});
      if (of_copy.replicas)
        builder_.add_speed_change({.time = change.time, .resource = *of_copy.replicas, .speed = 0});
    }
  }
}

}  // namespace stagecraft
