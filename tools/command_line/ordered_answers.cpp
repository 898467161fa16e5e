#include "tools/command_line/ordered_answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <ostream>
#include <streambuf>
#include <string>
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

}  // namespace

int OrderedAnswers::print(const Arguments& arguments, Session& session) const {
  if (count == 1) return make_ask()(0, session);
  std::vector<Answer> answers(count);
  std::vector<std::size_t> questions(count);
  std::iota(questions.begin(), questions.end(), std::size_t{0});
  const Interrupt interrupt;
  ProgressLine progress(session.err, session.err_is_terminal, count, noun);
  std::size_t done = 0;
  int worst = kDone;
  std::exception_ptr thrown;
  OrderedPool pool;
  pool.threads = jobs_of(arguments);
  pool.make_work = [&] {
    return [&, ask = make_ask()](std::size_t question) {
      answers[question] = answered(ask, question, session);
      return std::string();
    };
  };
  pool.accept = [&](std::size_t question, const std::string&) {
    progress.finish();
    const Answer answer = std::move(answers[question]);
    print_answer(answer, session);
    worst = std::max(worst, answer.code);
    if (!thrown) thrown = answer.thrown;
    ++done;
    return Interrupt::signal() == 0;
  };
  pool.tick = [&] {
    if (!arguments.has("quiet")) progress.update(done);
    return Interrupt::signal() == 0;
  };
  pool.run(questions);
  progress.finish();
  if (thrown) std::rethrow_exception(thrown);
  if (done == count) return worst;
  session.err << fmt::format("stopped: {} of {} {} are done\n", done, count, noun);
  return kBySignal + Interrupt::signal();
}

}  // namespace stagecraft
