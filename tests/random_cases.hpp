// How many random cases a property is tried on.
#pragma once

#ifndef __has_feature  // clang's
#define __has_feature(x) 0
#endif

namespace stagecraft {

// All of them; a tenth under a sanitizer, where a case takes three to six times as long. Nothing else differs:
// the cases that run there are the first of those that run everywhere.
constexpr int random_cases(int all) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer)
  return all / 10;
#else
  return all;
#endif
}

}  // namespace stagecraft
