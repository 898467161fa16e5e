#include "base/ids.hpp"

using namespace stagecraft;
using TaskId = Id<struct TaskTag>;
using LinkId = Id<struct LinkTag>;

int main() {
  IdVector<TaskId, int> tasks{10, 20};
  const LinkId link{1};
  return tasks[link];
}
