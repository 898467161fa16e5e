// The repository as a data directory of tests: each file is read once.
#pragma once

#include "sim/scenario/library.hpp"

namespace stagecraft {

inline Library& repository_files() {
  thread_local Library library(DataDirectory{.root = STAGECRAFT_SOURCE_DIR});
  return library;
}

}  // namespace stagecraft
