#include "tools/command_line/ordered_answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <numeric>
#include <ostream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include "sim/study/ordered_pool.hpp"
#include "tools/command_line/interrupt.hpp"
#include "tools/command_line/progress.hpp"

namespace stagecraft {
namespace {

// What was written, to which of the two outputs, in the order in which it was.
struct Written {
  bool to_err = false;
  std::string text;
};

class Recorder : public std::streambuf {
 public:
  Recorder(std::vector<Written>& all, bool to_err) : all_(all), to_err_(to_err) {}

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    if (all_.empty() || all_.back().to_err != to_err_) all_.push_back({.to_err = to_err_, .text = {}});
    all_.back().text.append(text, static_cast<std::size_t>(size));
    return size;
  }
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char one = traits_type::to_char_type(c);
    xsputn(&one, 1);
    return c;
  }

 private:
  std::vector<Written>& all_;
  bool to_err_;
};

struct Answer {
  std::vector<Written> written;
  int code = kDone;
  std::exception_ptr thrown;
};

Answer answered(const OrderedAnswers::Ask& ask, std::size_t question, const Session& session) {
  Answer answer;
  Recorder out_buffer(answer.written, false), err_buffer(answer.written, true);
  std::ostream out(&out_buffer), err(&err_buffer);
  Session own{.out = out,
              .err = err,
              .data = session.data,
              .out_is_terminal = session.out_is_terminal,
              .err_is_terminal = session.err_is_terminal};
  try {
    answer.code = ask(question, own);
  } catch (...) {
    answer.thrown = std::current_exception();
  }
  return answer;
}

void print_answer(const Answer& answer, Session& session) {
  for (const Written& piece : answer.written) (piece.to_err ? session.err : session.out) << piece.text;
  session.out << std::flush;
}

// All questions, and those of their answers that are there.
class Round {
 public:
  Round(const OrderedAnswers& asked, const Arguments& arguments, Session& session)
      : asked_(asked),
        session_(session),
        quiet_(arguments.has("quiet")),
        answers_(asked.count),
        ended_(asked.count),
        progress_(session.err, session.err_is_terminal, asked.count, asked.noun) {}

  int run(int threads) {
    std::vector<std::size_t> questions(asked_.count);
    std::iota(questions.begin(), questions.end(), std::size_t{0});
    OrderedPool pool;
    pool.threads = threads;
    pool.make_work = [this] {
      return [this, ask = asked_.make_ask()](std::size_t question) {
        answers_[question] = answered(ask, question, session_);
        ended_[question] = true;
        return std::string();
      };
    };
    pool.accept = [this](std::size_t question, const std::string&) {
      print(question);
      return goes_on();
    };
    pool.tick = [this] {
      if (!quiet_) progress_.update(printed_);
      return goes_on();
    };
    pool.run(questions);
    const int code = conclude();
    if (thrown_) std::rethrow_exception(thrown_);
    return code;
  }

 private:
  // Where the program can be left, no answer that is still being made holds it up.
  bool goes_on() {
    if (Interrupt::signal() == 0) return true;
    if (session_.leave) session_.leave(conclude());
    return false;
  }

  void print(std::size_t question) {
    progress_.finish();
    const Answer answer = std::move(answers_[question]);
    ended_[question] = false;
    print_answer(answer, session_);
    worst_ = std::max(worst_, answer.code);
    if (!thrown_) thrown_ = answer.thrown;
    ++printed_;
  }

  // Prints as well what ended behind an answer that did not.
  int conclude() {
    progress_.finish();
    for (std::size_t question = 0; question < asked_.count; ++question)
      if (ended_[question]) print(question);
    if (printed_ == asked_.count) return worst_;
    session_.err << fmt::format("stopped: {} of {} {} are done\n", printed_, asked_.count, asked_.noun);
    return kBySignal + Interrupt::signal();
  }

  const OrderedAnswers& asked_;
  Session& session_;
  bool quiet_;
  std::vector<Answer> answers_;
  std::vector<std::atomic<bool>> ended_;  // of an answer: it is there, and not printed yet
  ProgressLine progress_;
  std::size_t printed_ = 0;
  int worst_ = kDone;
  std::exception_ptr thrown_;
};

}  // namespace

int OrderedAnswers::print(const Arguments& arguments, Session& session) const {
  if (count == 1) return make_ask()(0, session);
  const Interrupt interrupt;
  return Round(*this, arguments, session).run(jobs_of(arguments));
}

}  // namespace stagecraft
