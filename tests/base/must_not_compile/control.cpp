// Compiles: everything that its neighbours do, done right.
#include "base/ids.hpp"
#include "base/units.hpp"
using namespace stagecraft;
using TaskId = Id<struct TaskTag>;

int main() {
  Duration time{3};
  Bytes bytes = Bytes{1} + Bytes{2};
  IdVector<TaskId, int> tasks{10, 20};
  const TaskId task{1};
  time += bytes / Bandwidth{1};
  return tasks[task] + static_cast<int>(time.count()) + (Bytes{1} < Bytes{2} ? 1 : 0);
}
