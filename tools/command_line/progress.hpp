// Progress of a long study. On a terminal it is one line that is rewritten, with rate and time left;
// otherwise a line every tenth of a study over 30 s. Nothing for work done within a second.
#pragma once

#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <string_view>

namespace stagecraft {

class ProgressLine {
 public:
  // `noun`: what is counted.
  ProgressLine(std::ostream& err, bool terminal, std::size_t total, std::string_view noun = "points");
  void update(std::size_t done);
  void finish();  // takes the line away

 private:
  using Clock = std::chrono::steady_clock;
  std::ostream& err_;
  bool terminal_;
  std::size_t total_;
  std::string_view noun_;
  std::size_t tenth_ = 0;
  bool shown_ = false;
  Clock::time_point begun_ = Clock::now();
  Clock::time_point last_ = begun_;
};

}  // namespace stagecraft
