#include "base/check.hpp"

#include <fmt/format.h>

namespace stagecraft::detail {

void fail_check(const char* expression, const char* file, int line, std::string_view why) {
  throw InternalError(fmt::format("{}:{}: {} ({})", file, line, why, expression));
}

}  // namespace stagecraft::detail
