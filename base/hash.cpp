#include "base/hash.hpp"

#include <fmt/format.h>

namespace stagecraft {

std::string StableHash::hex() const {
  return fmt::format("{:016x}", state_);
}

}  // namespace stagecraft
