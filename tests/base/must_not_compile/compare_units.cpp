#include "base/ids.hpp"
#include "base/units.hpp"

using namespace stagecraft;

int main() {
  return Bandwidth{1} < FlopRate{1} ? 1 : 0;
}
