// Answers to several questions, made at the same time and printed in their order.
//
// Each answer has outputs of its own, which are passed on once all earlier ones are: the same bytes in the
// same order on both outputs, on any number of threads. Of exceptions the first is thrown once all others are
// printed. Ctrl-C prints what has ended, if need be without an earlier one, and leaves the program at once; where
// it cannot be left (Session), running answers end first.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "tools/command_line/command_line.hpp"

namespace stagecraft {

struct OrderedAnswers {
  using Ask = std::function<int(std::size_t question, Session& session)>;  // gives an exit code

  std::size_t count = 0;
  std::string_view noun = "scenarios";  // of messages: "stopped: 2 of 5 scenarios are done"
  std::function<Ask()> make_ask;        // once on each thread

  // Asks on as many threads as --jobs says; one question is asked on this one. Returns the worst exit code,
  // or kBySignal and the signal.
  [[nodiscard]] int print(const Arguments& arguments, Session& session) const;
};

}  // namespace stagecraft
