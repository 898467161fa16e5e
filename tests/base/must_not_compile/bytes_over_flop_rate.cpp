#include "base/ids.hpp"
#include "base/units.hpp"

using namespace stagecraft;

int main() {
  [[maybe_unused]] auto time = Bytes{1} / FlopRate{1};
}
