#include "sim/resilience/predict_goodput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>
#include <variant>

#include "base/text.hpp"
#include "sim/goodput/expected_failures.hpp"
#include "sim/goodput/run_repeats.hpp"
#include "sim/goodput/spares.hpp"
#include "sim/resilience/checkpoint_times.hpp"
#include "sim/resilience/diary.hpp"
#include "sim/resilience/goodput_run.hpp"
#include "sim/resilience/varied_inputs.hpp"

namespace stagecraft {
namespace {

MeanInterval mean_interval_of(const Statistic& statistic) {
  return {.mean = statistic.mean, .ci95 = statistic.ci95};
}

void fill_result(const GoodputRun& ran, GoodputReport& report) {
  const GoodputResult& result = ran.result;
  report.samples_per_s = mean_interval_of(result.samples_per_s);
  if (auto& interval = report.samples_per_s.ci95)
    (*interval)[1] =
        std::min((*interval)[1], std::max(report.ideal_samples_per_s, report.samples_per_s.mean));
  report.fraction_of_ideal = mean_interval_of(result.fraction_of_ideal);
  report.ettr = mean_interval_of(result.ettr);
  report.failures = result.failures;
  report.restarts = result.restarts;
  report.mean_time_to_recover_s = result.mean_time_to_recover_s;
  if (result.failures > 0) report.mean_time_between_failures_s = to_seconds(result.horizon) / result.failures;
  report.buckets_s = result.buckets_s;
  for (const CauseResult& cause : result.causes)
    if (cause.failures > 0 || cause.down_s > 0 || cause.lost_work_s > 0)
      report.causes.push_back({.cause = cause.cause,
                               .failures = cause.failures,
                               .stopped_s = cause.down_s,
                               .undone_s = cause.lost_work_s});
  std::stable_sort(report.causes.begin(), report.causes.end(),
                   [](const GoodputCause& a, const GoodputCause& b) {
                     return a.stopped_s + a.undone_s > b.stopped_s + b.undone_s;
                   });
}

std::string name_of(CheckpointMode mode) {
  return std::string(kCheckpointModeNames[static_cast<std::size_t>(mode)]);
}

// Those of a replayed evaluation: Varuna's.
GoodputCheckpoint replayed_checkpoint(const FailureSpec& spec, const GoodputSetup& setup) {
  const std::int64_t every = spec.policy.checkpoint_every;
  if (!setup.replay || spec.policy.kind != PolicyKind::kVaruna || every <= 0) return {.mode = "none"};
  return {.mode = name_of(CheckpointMode::kSync),
          .interval = every * setup.ideal.duration,
          .steps = every,
          .block = spec.checkpoint.block.value_or(Duration::zero())};
}

void fill_checkpoint(const GoodputJob& job, const FailureSpec& spec, const GoodputRun& ran,
                     GoodputReport& report) {
  if (!ran.checkpointing) {
    report.checkpoint = replayed_checkpoint(spec, ran.setup);
    return;
  }
  const Checkpointing& times = *ran.checkpointing;
  const Duration iteration = ran.setup.ideal.duration;
  const bool never = is_never(times.interval), whole = times.interval == Duration::zero();
  const std::int64_t asked =
      whole ? times.every_steps
            : std::max<std::int64_t>(1, std::llround(to_seconds(times.interval) / to_seconds(iteration)));
  const std::int64_t steps = std::max(asked, steps_until_written(times, iteration));
  const bool given = whole || spec.checkpoint.rule == IntervalRule::kTime;
  if (given && steps > asked)
    report.notes.push_back(fmt::format(
        "failures.checkpoint.interval: a snapshot waits until the one before is written, {}: every {} "
        "steps, not every {}",
        human(times.persist), steps, asked));
  report.checkpoint = {.mode = name_of(times.mode),
                       .interval = never ? Duration::zero() : steps * iteration,
                       .steps = never ? 0 : steps,
                       .never = never,
                       .block = times.block,
                       .persist = times.persist,
                       .load = times.load,
                       .bytes = spec.checkpoint.bytes.value_or(job.costs.state)};
}

// The exact optimum for what a checkpoint costs.
void advise_interval(const FailureSpec& spec, const GoodputRun& ran, GoodputReport& report) {
  if (!ran.checkpointing) return;
  const Checkpointing& times = *ran.checkpointing;
  const auto best = best_interval(times, ran.setup.ideal.duration, ran.losses.per_s);
  if (!best) return;
  if (!ran.losses.known) {
    report.notes.push_back(
        "failures.checkpoint.interval: no failure of the trial repeats sent the job back to a checkpoint, so "
        "the optimum is not known; the interval is for half a failure in them, and depends on `horizon`");
    return;
  }
  report.advice.interval = best->time;
  report.advice.interval_steps = best->steps;
  report.advice.interval_why = fmt::format("the optimum for {} a checkpoint", human(cost_of(times)));
  if (spec.checkpoint.mode == CheckpointMode::kInMemory)
    report.advice.interval_why += fmt::format(" in storage; memory is lost {} times a year",
                                              mean_count(ran.losses.per_s * kSecondsPerYear));
}

// Nodes that are away at once are as many as there are failures during a repair, and under maintenance.
void advise_spares(const FailureSpec& spec, const GoodputRun& ran, GoodputReport& report) {
  const int working = ran.setup.job_nodes();
  const int pool = spares_for(spec, working);
  if (pool == ran.setup.spares || (pool == 0 && unavailable_share(spec, working) <= 0)) return;
  const std::string spares = counted(pool, "spare");
  report.advice.spares = pool;
  report.advice.spares_how = spec.policy.has_spares()
                                 ? "keep " + spares
                                 : "hot-spares or elastic with " + spares + " would cover what fails";
  report.advice.spares_why =
      fmt::format("in 99 % of the time no more of the {} nodes, spares among them, are away",
                  with_thousands(working + pool));
}

// "given, job.yaml:9"; an option of the command line has no lines.
std::string given_at(const SourceLocation& where) {
  return "given, " + where.file + (where.line > 0 ? fmt::format(":{}", where.line) : "");
}

// Source of a value: its place in the scenario, or the reason of its default.
std::string source_of(const Scenario& scenario, const std::string& path) {
  // Where processes are a list, their keys have a number in between.
  const std::string section = path.substr(0, path.rfind('.'));
  const std::string key = path.substr(path.rfind('.'));
  const auto is_meant = [&](const std::string& known) {
    return known == path || known.starts_with(path + ".") ||
           (known.starts_with(section + ".") && known.ends_with(key)) ||
           (key == ".detect" && known.ends_with(".causes"));
  };
  for (const auto& [known, where] : scenario.origins)
    if (is_meant(known)) return given_at(where);
  for (const AssumedInput& input : scenario.assumed) {
    if (!is_meant(input.path)) continue;
    const std::string range = input.low.empty()    ? "up to " + input.high
                              : input.high.empty() ? "from " + input.low
                                                   : input.low + " to " + input.high;
    const bool known = !input.low.empty() || !input.high.empty();
    return "assumed: " + input.source + (known ? "; published: " + range : "");
  }
  return "derived";
}

constexpr int kFewRepeats = 16;  // a comparison on the same failures needs no more

// Counts repeats for whoever watches.
class RepeatCount {
 public:
  RepeatCount(const GoodputOptions& options, const FailureSpec& spec)
      : options_(options), all_(static_cast<std::size_t>(spec.repeats)) {
    if (!options.inputs) return;
    const std::size_t runs =
        1 + 2 * static_cast<std::size_t>(std::ranges::count_if(
                    varied_inputs(), [&](const VariedInput& input) { return !input.value(spec).empty(); }));
    all_ += runs * static_cast<std::size_t>(std::min(spec.repeats, kFewRepeats));
  }

  [[nodiscard]] std::function<void()> after_each() {
    if (!options_.progress) return {};
    return [this] {
      const std::scoped_lock lock(mutex_);
      ++done_;
      options_.progress(done_, std::max(done_, all_));
    };
  }

 private:
  const GoodputOptions& options_;
  std::mutex mutex_;
  std::size_t all_, done_ = 0;
};

void fill_inputs(GoodputJob& job, const FailureSpec& spec, const GoodputRunRequest& whole,
                 GoodputReport& report) {
  constexpr double kMatters = 2e-4;
  const GoodputRunRequest request{.seed = whole.seed,
                                  .repeats = std::min(spec.repeats, kFewRepeats),
                                  .threads = whole.threads,
                                  .after_each = whole.after_each};
  // A default pool follows what it is for, as with --vary, and is itself an input.
  FailureSpec pooled = spec;
  pooled.policy.spares = report.spares;
  const double as_is = run_goodput(job, spec, request).result.samples_per_s.mean;
  if (as_is <= 0) return;
  for (const VariedInput& input : varied_inputs()) {
    const std::string value = input.value(pooled);
    if (value.empty()) continue;
    const auto changed = [&](double factor) {
      FailureSpec varied = input.of_pool ? pooled : spec;
      input.scale(varied, factor);
      return run_goodput(job, varied, request).result.samples_per_s.mean / as_is - 1;
    };
    GoodputInput row{.name = std::string(input.path), .value = value, .source = {}};
    row.half = changed(0.5);
    row.twice = changed(2);
    if (std::max(std::abs(row.half), std::abs(row.twice)) < kMatters) continue;
    row.source = input.of_pool && !spec.policy.spares
                     ? "derived: enough in 99 % of the time, and counted anew for every other row"
                     : source_of(job.scenario, row.name);
    report.inputs.push_back(std::move(row));
  }
  std::stable_sort(
      report.inputs.begin(), report.inputs.end(), [](const GoodputInput& a, const GoodputInput& b) {
        return std::max(std::abs(a.half), std::abs(a.twice)) > std::max(std::abs(b.half), std::abs(b.twice));
      });
}

// Varuna has other depths; the rest keep the job's own.
std::string note_on_memory(GoodputJob& job, const FailureSpec& spec) {
  const bool morphs = spec.policy.kind == PolicyKind::kVaruna;
  const std::string what = morphs && job.shapes.some_fit() ? "varuna trains in other shapes"
                           : morphs ? "nor does a shape of another depth; this is what it would do if it did"
                                    : "this is what it would do if it did";
  return fmt::format("the job does not fit into memory: {}; {}", job.simulation.report.memory.shortage(),
                     what);
}

// Reasons to doubt the answer.
std::vector<std::string> doubts(GoodputJob& job, const FailureSpec& spec, const GoodputRun& ran,
                                std::uint64_t seed) {
  std::vector<std::string> notes;
  if (!job.shapes.fits()) notes.push_back(note_on_memory(job, spec));
  if (const std::optional<std::string> refused = job.shapes.refused()) notes.push_back(*refused);
  if (!job.scenario.assertions.empty()) notes.push_back("assert: checked by `run`, not by `goodput`");
  for (const FailureProcess& process : spec.processes) {
    const auto* replay = std::get_if<TraceReplay>(&process.law);
    if (replay == nullptr || replay->trace.form != TraceForm::kFaults || replay->servers) continue;
    if (std::ssize(replay->trace.nodes) > ran.setup.nodes)
      notes.push_back(
          fmt::format("failures.process.servers: not given, so that the job has the first {} of the {} "
                      "servers that failed in {}; with it, its nodes are drawn from all that were watched",
                      ran.setup.nodes, replay->trace.nodes.size(), replay->file));
  }
  if (ran.result.samples_per_s.mean > 0) return notes;
  const int needed = ran.setup.job_nodes(), most = most_nodes_up(spec, ran.setup, seed);
  if (most < needed)
    notes.push_back(fmt::format(
        "nothing is trained: the job needs {} nodes, and no more than {} are ever there", needed, most));
  return notes;
}

// Does somebody bring a new node for each one lost?
bool replaces_nodes(const FailureSpec& spec) {
  return spec.policy.replaces_lost_nodes() &&
         std::ranges::any_of(spec.processes, [&](const FailureProcess& process) {
           return node_losses(spec, process).share > 0;
         });
}

GoodputReport report_of(GoodputJob& job, const FailureSpec& spec, const GoodputRun& ran,
                        const GoodputOptions& options) {
  GoodputReport report;
  report.scenario = job.scenario.source;
  report.name = job.scenario.name;
  report.headline = job.simulation.report.headline;
  report.policy = kPolicyNames[static_cast<std::size_t>(spec.policy.kind)];
  report.rules = kRulesNames[static_cast<std::size_t>(spec.policy.rules)];
  report.gpus = job.plan().gpus();
  report.nodes = ran.setup.nodes;
  report.spares = ran.setup.spares;
  report.replaces = replaces_nodes(spec);
  report.horizon = spec.horizon;
  report.repeats = spec.repeats;
  report.seed = options.seed;
  report.iteration_time = job.iteration();
  report.ideal_samples_per_s = rate_of(ran.setup.ideal);
  report.ideal_lacks = ran.setup.ideal_lacks;
  report.notes = doubts(job, spec, ran, options.seed);
  report.notes.insert(report.notes.end(), ran.setup.notes.begin(), ran.setup.notes.end());
  fill_result(ran, report);
  fill_checkpoint(job, spec, ran, report);
  if (report.samples_per_s.mean > 0) {  // the formulas are of a job that trains
    advise_interval(spec, ran, report);
    advise_spares(spec, ran, report);
  }
  report.shapes = job.shapes.asked();
  report.plan = ran.setup.description;
  if (options.timeline) report.timeline = diary_of(ran.result, spec, ran.setup.nodes);
  return report;
}

// Faults at an instant and other jobs beside it belong to one iteration: weeks of them are not modelled.
void refuse_what_one_iteration_has(const Scenario& scenario) {
  Diagnostics diagnostics;
  const auto refuse = [&](const char* path, const char* hint) {
    diagnostics.error({.code = "not-supported-yet",
                       .path = path,
                       .message = "not supported yet by `goodput`, which counts weeks of one job",
                       .hint = hint});
  };
  if (!scenario.faults.empty()) refuse("faults", "leave it out: `run` shows a fault inside an iteration");
  if (!scenario.network.placement.empty())
    refuse("network.placement", "leave it out: `run` shows several jobs on one fabric");
  throw_located(scenario, diagnostics);
}

}  // namespace

GoodputReport predict_goodput(const Scenario& scenario, const GoodputOptions& options) {
  if (!scenario.failures) {
    Diagnostics diagnostics;
    diagnostics.error({.code = "missing-key",
                       .where = {.file = scenario.source},
                       .path = "failures",
                       .message = "the scenario says nothing of failures",
                       .hint = "failures: {process: {kind: exponential, rate_per_node_day: 0.0038}, policy: "
                               "checkpoint-restart, horizon: 30 days, repeats: 100}"});
    diagnostics.throw_if_errors();
  }
  refuse_what_one_iteration_has(scenario);
  const FailureSpec& spec = *scenario.failures;
  GoodputJob job(scenario);
  RepeatCount count(options, spec);
  const GoodputRunRequest request{.seed = options.seed,
                                  .repeats = spec.repeats,
                                  .threads = options.threads,
                                  .timeline = options.timeline,
                                  .describe = options.plan,
                                  .after_each = count.after_each()};
  const GoodputRun ran = run_goodput(job, spec, request);
  GoodputReport report = report_of(job, spec, ran, options);
  if (options.inputs) fill_inputs(job, spec, request, report);
  for (const Diagnostic& warning : scenario.warnings) report.notes.push_back(one_line(warning));
  return report;
}

}  // namespace stagecraft
