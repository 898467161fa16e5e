#include <fmt/format.h>

#include <iterator>

#include "base/json.hpp"
#include "sim/report/measure.hpp"
#include "sim/view/lanes.hpp"
#include "sim/view/memory_steps.hpp"
#include "sim/view/trace.hpp"

namespace stagecraft {
namespace {

std::string in_json(std::string_view text) {
  JsonWriter json;
  json.value(text);
  return json.str();
}

class ChromeTrace {
 public:
  ChromeTrace(const TraceInput& input, const ByteSink& sink) : input_(input), sink_(sink) {
    for (const Label& label : input.program.labels) names_.push_back(in_json(label.name));
  }

  void write() {
    out_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    for (std::size_t rank = 0; rank < input_.ranks.size(); ++rank) write_process(rank, input_.ranks[rank]);
    std::int32_t rank = -1;
    int thread = 0;
    for (const Lane& lane : lanes_of(input_.program, input_.timeline)) {
      thread = lane.rank == rank ? thread + 1 : 0;
      rank = lane.rank;
      write_thread(lane, thread);
      for (const TaskId task : lane.tasks) write_task(lane.rank, thread, task);
    }
    write_memory();
    if (!input_.timeline.stall) write_critical_path();
    out_ += "\n]}\n";
    sink_(out_);
  }

 private:
  void begin_event() {
    if (out_.size() >= kTracePiece) {
      sink_(out_);
      out_.clear();
    }
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
  }

  void write_process(std::size_t pid, std::string_view name) {
    begin_event();
    fmt::format_to(std::back_inserter(out_),
                   R"({{"ph":"M","pid":{},"tid":0,"name":"process_name","args":{{"name":{}}}}})", pid,
                   in_json(name));
    begin_event();
    fmt::format_to(
        std::back_inserter(out_),
        R"({{"ph":"M","pid":{0},"tid":0,"name":"process_sort_index","args":{{"sort_index":{0}}}}})", pid);
  }

  void write_thread(const Lane& lane, int thread) {
    begin_event();
    fmt::format_to(std::back_inserter(out_),
                   R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", lane.rank,
                   thread, in_json(lane.name));
  }

  void write_time(Duration time) {
    fmt::format_to(std::back_inserter(out_), "{}.{:03}", time.count() / 1000, time.count() % 1000);
  }

  void write_task(std::int32_t pid, int thread, TaskId task) {
    const Program& program = input_.program;
    const Duration start = input_.timeline.start[task], length = input_.timeline.end[task] - start;
    const LabelId label = program.label[task];
    begin_event();
    fmt::format_to(std::back_inserter(out_), R"({{"ph":"{}","pid":{},"tid":{},"name":{},"ts":)",
                   length > Duration::zero() ? "X" : "i", pid, thread, names_[label.index()]);
    write_time(start);
    if (length > Duration::zero()) {
      out_ += ",\"dur\":";
      write_time(length);
    } else {
      out_ += ",\"s\":\"t\"";
    }
    out_ += ",\"args\":{";
    const std::int32_t micro_batch = program.micro_batch[task], stage = program.labels[label].stage;
    if (micro_batch >= 0) fmt::format_to(std::back_inserter(out_), "\"micro-batch\":{}", micro_batch);
    if (stage >= 0)
      fmt::format_to(std::back_inserter(out_), "{}\"stage\":{}", micro_batch >= 0 ? "," : "", stage);
    out_ += "}}";
  }

  void write_memory() {
    const std::vector<std::vector<MemoryStep>> steps = memory_steps(input_.program, input_.timeline);
    for (std::size_t rank = 0; rank < steps.size(); ++rank) {
      for (const MemoryStep& step : steps[rank]) {
        begin_event();
        fmt::format_to(std::back_inserter(out_), R"({{"ph":"C","pid":{},"name":"activations","ts":)", rank);
        write_time(step.time);
        fmt::format_to(std::back_inserter(out_), R"(,"args":{{"bytes":{}}}}})", step.held.count());
      }
    }
  }

  void write_critical_path() {
    const std::vector<TaskId> path = critical_path(input_.program, input_.timeline);
    if (path.empty()) return;
    write_process(input_.ranks.size(), "critical path");
    for (const TaskId task : path)
      if (input_.timeline.end[task] > input_.timeline.start[task])
        write_task(static_cast<std::int32_t>(input_.ranks.size()), 0, task);
  }

  const TraceInput& input_;
  const ByteSink& sink_;
  std::vector<std::string> names_;  // by label, as JSON
  std::string out_;
  bool first_ = true;
};

}  // namespace

void write_chrome_trace(const TraceInput& input, const ByteSink& sink) {
  ChromeTrace(input, sink).write();
}

}  // namespace stagecraft
