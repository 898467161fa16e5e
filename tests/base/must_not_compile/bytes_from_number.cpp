#include "base/ids.hpp"
#include "base/units.hpp"

using namespace stagecraft;

int main() {
  [[maybe_unused]] Bytes bytes = 8;
}
