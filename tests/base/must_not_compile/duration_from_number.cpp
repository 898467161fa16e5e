#include "base/ids.hpp"
#include "base/units.hpp"

using namespace stagecraft;

int main() {
  [[maybe_unused]] Duration time = 3.5;
}
