// Answers to several questions, made at the same time and printed in their order.
//
// Each is made with outputs of its own, which are handed on as soon as all before it are: the same bytes, in
// the same order on both outputs, on any number of threads. One that throws ends the rest, as if they were
// asked one after another. Ctrl-C lets what runs end and leaves out the rest.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "tools/command_line.hpp"

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
