#include <cstdio>

#include "base/units.hpp"
using namespace stagecraft::literals;
// 1 GB at 500 GB/s is 2 ms.
int main() {
  std::printf("%lld ns\n", static_cast<long long>((1_GB / 500_GBps).count()));
}
