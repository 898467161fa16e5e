#include "base/ids.hpp"
#include "base/units.hpp"

using namespace stagecraft;
using TaskId = Id<struct TaskTag>;

int main() {
  [[maybe_unused]] TaskId task = 1;
}
