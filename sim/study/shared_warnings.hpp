// Warnings of the points of a sweep, each once. Shared by threads.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "base/diagnostic.hpp"

namespace stagecraft {

class SharedWarnings {
 public:
  // Takes the warnings among them.
  void add(const Diagnostics& found);
  // By place, path and message: the same whatever the order of the threads.
  [[nodiscard]] std::vector<Diagnostic> sorted() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::tuple<SourceLocation, std::string, std::string>, Diagnostic> known_;
};

}  // namespace stagecraft
