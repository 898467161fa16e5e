// Answers of several questions on threads: their order, and what becomes of the others where one throws.
#include "tools/command_line/ordered_answers.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>

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

INSTANTIATE_TEST_SUITE_P(Jobs, OrderedAnswersTest, testing::Values("1", "3"));

}  // namespace
}  // namespace stagecraft
