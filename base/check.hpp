// Checks that say "we are wrong", on in every build type.
//
// A failed SC_CHECK is a bug of Stagecraft, never of the user: it becomes an InternalError, which only `main`
// turns into exit code 3. What a user can get wrong is a Diagnostic (base/diagnostic.hpp).
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace stagecraft {

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {
[[noreturn]] void fail_check(const char* expression, const char* file, int line, std::string_view why);
}

}  // namespace stagecraft

// throws InternalError naming the expression, its place and `why` when `condition` is false.
#define SC_CHECK(condition, why)         \
  (static_cast<bool>(condition) ? void() \
                                : ::stagecraft::detail::fail_check(#condition, __FILE__, __LINE__, (why)))
