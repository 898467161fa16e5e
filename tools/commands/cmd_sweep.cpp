#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "sim/study/ordered_pool.hpp"
#include "sim/study/row_columns.hpp"
#include "sim/study/row_file.hpp"
#include "tools/command_line/interrupt.hpp"
#include "tools/command_line/progress.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/command_line/vary_option.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/sweep_engine.hpp"
#include "tools/commands/sweep_outputs.hpp"

namespace stagecraft {
namespace {

constexpr const char* kExample = "stagecraft sweep scenarios/sweeps/schedules.yaml";

struct Shard {
  std::size_t index = 0, count = 1;
};

Shard shard_of(const Arguments& arguments) {
  const std::optional<std::string> text = arguments.text("shard");
  if (!text) return {};
  Shard shard;
  const char* end = text->data() + text->size();
  const auto [slash, bad_index] = std::from_chars(text->data(), end, shard.index);
  const bool index_read = bad_index == std::errc() && slash != end && *slash == '/';
  const auto [last, bad_count] = std::from_chars(index_read ? slash + 1 : end, end, shard.count);
  if (!index_read || bad_count != std::errc() || last != end || shard.count == 0 ||
      shard.index >= shard.count)
    throw UsageError(fmt::format("--shard {}: is no share of a sweep", *text),
                     "--shard 0/3, 1/3 and 2/3 are the three parts of one");
  return shard;
}

std::vector<std::size_t> points_of(const Shard& shard, std::size_t points) {
  std::vector<std::size_t> mine;
  for (std::size_t point = shard.index; point < points; point += shard.count) mine.push_back(point);
  return mine;
}

// May the resolved scenario have `failures`?
bool has_failures(const SweepSpec& spec) {
  const std::vector<std::string> paths = spec.paths();
  return spec.base.root.find("failures") != nullptr ||
         std::any_of(paths.begin(), paths.end(),
                     [](const std::string& path) { return path.starts_with("failures"); });
}

std::vector<VariedPath> varied_paths(const SweepSpec& spec) {
  std::vector<VariedPath> paths;
  for (std::string& path : spec.paths())
    paths.push_back({.path = std::move(path), .why = "the sweep varies it"});
  return paths;
}

// The same command on the file of rows that it has begun.
std::string command_to_go_on(const Arguments& arguments) {
  const std::string& sweep = arguments.words().front();
  const bool like_an_option = sweep.starts_with('-') && sweep != "-";
  std::string line = "stagecraft sweep" + (like_an_option ? "" : " " + shell_quoted(sweep));
  for (const OptionSpec& option : options_of(arguments.command())) {
    if (!arguments.has(option.name) || option.written == Written::kRowByRow || option.name == "force")
      continue;
    const std::string name = fmt::format(" --{}", option.name);
    if (option.argument.empty()) line += name;
    for (const std::string& value : arguments.all(option.name)) line += name + " " + shell_quoted(value);
  }
  if (const auto database = arguments.text("sqlite")) line += " --sqlite " + shell_quoted(*database);
  if (arguments.has("html")) line += " --force";  // the page of the rows so far is there
  const std::string rows = arguments.text("output").value_or(arguments.text("resume").value_or(""));
  line += " --resume " + shell_quoted(rows);
  return line + (like_an_option ? " -- " + shell_quoted(sweep) : "");
}

class SweepCommand {
 public:
  SweepCommand(const Arguments& arguments, Session& session, const Sweep& sweep)
      : arguments_(arguments),
        session_(session),
        sweep_(sweep),
        points_(points_of(shard_of(arguments), sweep.points.size())) {}

  int run(const SweepEngine& engine) {
    if (!prepare_outputs() || !open_file() || !open_outputs()) return kWrongInput;
    const Interrupt interrupt;
    const std::span<const std::size_t> todo = std::span(points_).subspan(finished_);
    ProgressLine progress(session_.err, session_.err_is_terminal, todo.size());
    const auto end = [&] {
      progress.finish();
      print_warnings(warnings_.sorted(), arguments_, session_);
      return conclude();
    };
    const auto goes_on = [&] {
      if (Interrupt::signal() == 0) return true;
      if (session_.leave) session_.leave(end());  // points that still run hold nothing up
      return false;
    };
    engine(
        {.sweep = sweep_,
         .data = session_.data,
         .cache = cache_,
         .warnings = warnings_,
         .points = todo,
         .accept = [&](std::size_t, const std::string& row) { return write(row) && show(row) && goes_on(); },
         .tick =
             [&] {
               if (!arguments_.has("quiet")) progress.update(outputs_->rows() - finished_);
               return goes_on();
             }});
    return end();
  }

 private:
  bool prepare_outputs() {
    if (arguments_.has("output") && arguments_.has("resume"))
      throw UsageError("--output begins a file, --resume goes on with one", "give one of them");
    Diagnostics diagnostics;
    outputs_.emplace(
        RowOutputs::Request{.columns = row_columns(sweep_.spec.paths(), has_failures(sweep_.spec)),
                            .to_file = arguments_.has("output") || arguments_.has("resume"),
                            .replace = arguments_.has("resume"),
                            .name = sweep_.spec.name},
        arguments_, session_, diagnostics);
    return !refused(diagnostics);
  }

  bool open_file() {
    Diagnostics diagnostics;
    if (const auto name = arguments_.text("output"))
      file_ = RowFile::create(*name, arguments_.has("force"), diagnostics);
    if (const auto name = arguments_.text("resume"))
      file_ = RowFile::resume(
          *name, [&](const std::string& line) { return finished_row(line); }, diagnostics);
    if (diagnostics.has_errors()) return !refused(diagnostics);
    if (finished_ > 0 && !arguments_.has("quiet"))
      session_.err << fmt::format("{} of {} points are there already\n", finished_, points_.size());
    return check_finished();
  }

  // With the rows of a former run, which must be those of this sweep.
  bool open_outputs() {
    Diagnostics diagnostics;
    outputs_->open(diagnostics);
    if (refused(diagnostics)) return false;
    std::ifstream rows(row_file_name());
    std::string row;
    for (std::size_t i = 0; i < finished_ && std::getline(rows, row); ++i)
      if (!show(row)) return session_.err << failure_ << '\n', false;
    return true;
  }

  bool refused(const Diagnostics& diagnostics) {
    print_diagnostics(diagnostics.sorted(), arguments_, session_, kNothingSimulated);
    return diagnostics.has_errors();
  }

  // A row of a former run: whether it is the next of this one.
  std::optional<std::string> finished_row(const std::string& line) {
    if (finished_ == points_.size()) return "the sweep has no more points than the lines before";
    const std::string head = row_head(sweep_, points_[finished_]);
    if (!line.starts_with(head) || !line.ends_with('}'))
      return fmt::format(
          "is not the row of point {} of this sweep with its files as they are now, or not of this --seed, "
          "--full or --shard",
          points_[finished_]);
    remember(line, head.size());
    last_finished_ = line;
    ++finished_;
    return std::nullopt;
  }

  // Later points may be the same as finished ones.
  void remember(const std::string& line, std::size_t head) {
    constexpr std::string_view kHash = ",\"hash\":\"";
    constexpr std::size_t kDigits = 16;
    const std::size_t payload = head + kHash.size() + kDigits + 2;
    if (line.compare(head, kHash.size(), kHash) != 0 || line.size() <= payload) return;
    cache_.put(line.substr(head + kHash.size(), kDigits), line.substr(payload, line.size() - payload - 1));
  }

  // The sweep's hash may know no file that only some combination of values names: the last row may.
  bool check_finished() {
    if (finished_ == 0) return true;
    PointRunner runner(sweep_, session_.data, cache_);
    const std::optional<std::string> hash = runner.hash(points_[finished_ - 1]);
    const std::string expected = hash ? fmt::format(",\"hash\":\"{}\",", *hash) : ",\"hash\":null,";
    if (last_finished_.find(expected) != std::string::npos) return true;
    Diagnostics diagnostics;
    diagnostics.error({.code = "other-sweep",
                       .where = {.file = row_file_name(), .line = static_cast<int>(finished_)},
                       .message = "the scenario of this point is another one today",
                       .hint = "a file that it names has changed: begin a new file"});
    return !refused(diagnostics);
  }

  // A new row, into the file.
  bool write(const std::string& row) {
    if (!file_) return true;
    const std::optional<std::string> why = file_->append(row);
    if (why)
      failure_ = fmt::format(
          "{}: error: cannot be written: {}\n  {} of {} rows are in it; --resume goes on with them",
          row_file_name(), *why, outputs_->rows(), points_.size());
    return !why;
  }

  bool show(const std::string& row) {
    const std::optional<std::string> why = outputs_->add(row);
    if (why) failure_ = "stagecraft: error: " + *why;
    return !why;
  }

  [[nodiscard]] std::string row_file_name() const {
    return arguments_.text("output").value_or(arguments_.text("resume").value_or(""));
  }

  int conclude() {
    if (failure_.empty()) {
      std::optional<std::string> why = file_ ? file_->sync() : std::nullopt;
      if (!why) why = outputs_->finish();
      if (why) failure_ = "stagecraft: error: " + *why;
    }
    if (!failure_.empty()) return session_.err << failure_ << '\n', kWrongInput;
    if (outputs_->rows() < points_.size()) return interrupted();
    outputs_->print_table();
    if (!arguments_.has("quiet")) session_.err << summary();
    if (outputs_->bugs() > 0) return kOurBug;
    return outputs_->feasible() > 0 || points_.empty() ? kDone : kAnswerIsNo;
  }

  int interrupted() {
    session_.err << fmt::format("stopped: {} of {} points are done\n", outputs_->rows(), points_.size());
    if (file_) session_.err << "  go on with: " << printable(command_to_go_on(arguments_)) << '\n';
    return kBySignal + Interrupt::signal();
  }

  [[nodiscard]] std::string summary() const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
    const auto spoken = [](std::size_t n) { return with_thousands(static_cast<std::int64_t>(n)); };
    if (points_.empty())
      return fmt::format("the shard has none of the {} points\n", spoken(sweep_.points.size()));
    const std::size_t rows = outputs_->rows(), feasible = outputs_->feasible();
    std::string text =
        fmt::format("{}: {} feasible, {} not", counted_thousands(static_cast<std::int64_t>(rows), "point"),
                    spoken(feasible), spoken(rows - feasible));
    if (cache_.reused() > 0) text += fmt::format(", {} the same as others", spoken(cache_.reused()));
    return text + fmt::format("; {} s, {}/s\n", four_digits(seconds),
                              four_digits(static_cast<double>(rows - finished_) / std::max(seconds, 1e-9)));
  }

  const Arguments& arguments_;
  Session& session_;
  const Sweep& sweep_;
  std::vector<std::size_t> points_;  // of the shard
  PayloadCache cache_;
  SharedWarnings warnings_;
  std::optional<RowFile> file_;
  std::optional<RowOutputs> outputs_;
  std::size_t finished_ = 0;  // rows of a former run
  std::string last_finished_, failure_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace

SweepEngine sweep_on_threads(int threads) {
  return [threads](const SweepWork& work) {
    OrderedPool pool;
    pool.threads = threads;
    pool.make_work = [&] {
      auto runner = std::make_shared<PointRunner>(work.sweep, work.data, work.cache, &work.warnings);
      return [runner](std::size_t point) { return runner->row(point); };
    };
    pool.accept = work.accept;
    pool.tick = work.tick;
    pool.run(work.points);
  };
}

std::string sweep_file(const Arguments& arguments) {
  if (arguments.words().empty()) throw UsageError("no sweep is named", kExample);
  if (arguments.words().size() > 1) throw UsageError("one sweep at a time", kExample);
  if (arguments.words()[0].empty()) throw UsageError("the name of a sweep is empty", kExample);
  return arguments.words()[0];
}

RowOptions row_options(const Arguments& arguments) {
  return {.seed = seed_of(arguments),
          .detail = arguments.has("full") ? ResultDetail::kWhole : ResultDetail::kBrief};
}

int sweep_command_on(const SweepEngine& engine, const Arguments& arguments, Session& session) {
  const std::string file = sweep_file(arguments);
  Library library(session.data);
  Diagnostics diagnostics;
  const std::optional<Sweep> sweep =
      prepare_sweep(file, arguments.all("set"), row_options(arguments), library, diagnostics);
  if (!sweep || !arguments.has("quiet"))
    print_diagnostics(diagnostics.sorted(), arguments, session, kNothingSimulated);
  if (!sweep) return kWrongInput;
  print_warnings(overruled_settings(arguments, varied_paths(sweep->spec)), arguments, session);
  return SweepCommand(arguments, session, *sweep).run(engine);
}

int sweep_command(const Arguments& arguments, Session& session) {
  return sweep_command_on(sweep_on_threads(jobs_of(arguments, all_cores())), arguments, session);
}

}  // namespace stagecraft
