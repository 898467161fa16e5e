// Answers of several questions on threads: their order, and what becomes of the others where one throws.
#include "tools/command_line/ordered_answers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "tools/command_line/interrupt.hpp"
#include "tools/commands/commands.hpp"

namespace stagecraft {
namespace {

class OrderedAnswersTest : public testing::TestWithParam<const char*> {
 protected:
  int ask(const OrderedAnswers::Ask& answer) {
    const OrderedAnswers answers{.count = 5, .make_ask = [&] { return answer; }};
    return answers.print(parse_arguments(*find_command("run"), commands(), {"--quiet", "--jobs", GetParam()}),
                         session_);
  }

  std::ostringstream out_, err_;
  Session session_{.out = out_, .err = err_, .data = {}};
};

TEST_P(OrderedAnswersTest, AreInTheOrderOfTheQuestionsWithTheWorstCode) {
  EXPECT_EQ(ask([](std::size_t question, Session& session) {
              session.out << question << '\n';
              return question == 1 ? 2 : 0;
            }),
            2);
  EXPECT_EQ(out_.str(), "0\n1\n2\n3\n4\n");
}

TEST_P(OrderedAnswersTest, OfOneThatThrowsTakeNoOthersAway) {
  const auto answer = [](std::size_t question, Session& session) {
    if (question % 2 == 1) throw std::runtime_error("question " + std::to_string(question));
    session.out << question << '\n';
    return 0;
  };
  try {
    (void)ask(answer);
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "question 1");
  }
  EXPECT_EQ(out_.str(), "0\n2\n4\n");
}

// Ctrl-C while the first of three threads makes its answer, the second waits to be left, and the third has ended
// question 1 and comes to question 3.
class StoppedAnswersTest : public testing::Test {
 protected:
  int ask(const std::function<void()>& rest) {
    const OrderedAnswers answers{.count = 5, .make_ask = [&]() -> OrderedAnswers::Ask {
                                   return [&](std::size_t question, Session& session) {
                                     if (question == 3) std::raise(SIGINT);
                                     if (question != 1) rest();
                                     if (question < 4) session.out << question << '\n';
                                     return 0;
                                   };
                                 }};
    return answers.print(parse_arguments(*find_command("run"), commands(), {"--quiet", "--jobs", "3"}),
                         session_);
  }

  static void wait_for(const std::function<bool()>& that) {
    while (!that()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::ostringstream out_, err_;
  Session session_{.out = out_, .err = err_, .data = {}};
};

TEST_F(StoppedAnswersTest, LeaveTheProgramAtOnceWithWhatHasEnded) {
  struct Left {
    int code;
  };
  std::atomic<bool> left = false;
  session_.leave = [&](int code) {
    left = true;
    throw Left{code};
  };
  try {
    (void)ask([&] { wait_for([&] { return left.load(); }); });
    ADD_FAILURE();
  } catch (const Left& way_out) {
    EXPECT_EQ(way_out.code, 128 + SIGINT);
  }
  EXPECT_EQ(out_.str(), "1\n");
  EXPECT_EQ(err_.str(), "stopped: 1 of 5 scenarios are done\n");
}

TEST_F(StoppedAnswersTest, AreAllPrintedWhereTheProgramIsAnothers) {
  (void)ask([] { wait_for([] { return Interrupt::signal() != 0; }); });
  EXPECT_EQ(out_.str(), "0\n1\n2\n3\n");
}

INSTANTIATE_TEST_SUITE_P(Jobs, OrderedAnswersTest, testing::Values("1", "3"));

}  // namespace
}  // namespace stagecraft
