#include "base/ids.hpp"
#include "base/units.hpp"

using namespace stagecraft;

int main() {
  [[maybe_unused]] auto sum = Bytes{1} + Flops{1};
}
