#include "sim/resilience/goodput_run.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "sim/goodput/expected_failures.hpp"
#include "sim/goodput/history.hpp"
#include "sim/goodput/log_gamma.hpp"
#include "sim/goodput/machines.hpp"
#include "sim/goodput/memory_losses.hpp"
#include "sim/goodput/restart_time.hpp"

namespace stagecraft {
namespace {

// Where the scheduler replaces a lost node at once, its place is never empty and can fail again: the node is
// back after a nanosecond. (Recorded traces are unchanged.)
FailureSpec as_the_job_sees_it(const FailureSpec& spec) {
  FailureSpec seen = spec;
  if (!spec.policy.replaces_lost_nodes()) return seen;
  const RepairSpec at_once{.kind = RepairKind::kConstant, .time = Duration(1), .times = {}, .file = {}};
  seen.repair = at_once;
  for (FailureProcess& process : seen.processes) {
    for (Cause& cause : process.causes)
      if (cause.repair) cause.repair = at_once;
    if (auto* maintenance = std::get_if<Maintenance>(&process.law)) maintenance->duration = Duration(1);
  }
  return seen;
}

bool in_memory(const FailureSpec& spec) {
  return spec.checkpoint.mode == CheckpointMode::kInMemory;
}

bool has_maintenance(const FailureSpec& spec) {
  return std::ranges::any_of(spec.processes, [](const FailureProcess& process) {
    return std::holds_alternative<Maintenance>(process.law);
  });
}

// Does every failure of the job send it back to a checkpoint, and is the rate of those that need storage a
// formula? Where others train on, where the job waits for nodes that memory has lost, and where some failures
// are announced or recorded, how often it goes back is counted.
bool goes_back_by_formula(const FailureSpec& spec) {
  const PolicySpec& policy = spec.policy;
  const bool always =
      policy.kind == PolicyKind::kCheckpointRestart || policy.kind == PolicyKind::kVaruna ||
      policy.kind == PolicyKind::kNone ||
      (policy.kind == PolicyKind::kHotSpares && policy.state == StateSource::kCheckpoint && !in_memory(spec));
  return always && !has_maintenance(spec) &&
         std::ranges::none_of(spec.processes, [&](const FailureProcess& process) {
           return std::holds_alternative<TraceReplay>(process.law) ||
                  (in_memory(spec) && std::holds_alternative<HourlySpot>(process.law)) ||
                  std::holds_alternative<WeibullNodeFailures>(process.law) ||
                  std::holds_alternative<WeibullClusterFailures>(process.law) || has_lemons(process);
         });
}

// Half a loss more than was seen, since none seen is not none; nor is it more than the formula has.
LossRate losses_of(const GoodputResult& result, double by_formula) {
  double training = 0;
  for (const Bucket bucket : {Bucket::kProductive, Bucket::kDegraded, Bucket::kLostWork, Bucket::kCheckpoint})
    training += result.buckets_s[static_cast<std::size_t>(bucket)];
  const double losses = result.went_back + 0.5 / result.repeats;
  const double counted = losses / std::max(training, 0.01 * to_seconds(result.horizon));
  const bool seen = result.went_back > 0;
  if (!seen && by_formula > 0 && by_formula <= counted) return {.per_s = by_formula};
  return {.per_s = counted, .known = seen};
}

// Nodes that hold each state, where peers have it.
int holders_of(GoodputJob& job, const FailureSpec& spec, int nodes) {
  if (spec.policy.backup) return 2;
  int fewest = nodes;
  for (const std::vector<int>& holders : job.shapes.holders(nodes))
    fewest = std::min(fewest, static_cast<int>(holders.size()));
  return fewest;
}

// The chance that a lost node finds no spare: as many of the others are away.
double pool_is_empty(const FailureSpec& spec, const GoodputSetup& setup) {
  const double away = unavailable_share(spec, setup.job_nodes());
  const int others = setup.nodes - 1;
  double fewer = 0;
  for (int nodes = 0; nodes < setup.spares; ++nodes)
    fewer += std::exp(log_choose(others, nodes)) * std::pow(away, nodes) * std::pow(1 - away, others - nodes);
  return std::clamp(1 - fewer, 0.0, 1.0);
}

// Of corruption that is found at once memory has a copy, and peers have none.
double corruption_found_at_once(const FailureSpec& spec, int nodes) {
  double rate = 0;
  for (const FailureProcess& process : spec.processes)
    if (const auto* law = std::get_if<SilentCorruption>(&process.law);
        law != nullptr && law->discovery == Duration::zero())
      rate += failures_per_second(spec, process, nodes);
  return rate;
}

// Failures after which the job needs its checkpoint in storage, by formula.
double failures_for_storage(GoodputJob& job, const FailureSpec& spec, const GoodputSetup& setup) {
  const int nodes = setup.job_nodes();
  const PolicySpec& policy = spec.policy;
  const bool peers = policy.kind == PolicyKind::kHotSpares && policy.state == StateSource::kPeer;
  if (!in_memory(spec) && !peers) return failures_per_second(spec, nodes);
  const bool swaps = policy.kind == PolicyKind::kHotSpares;
  const Duration restart = swaps ? policy.swap : restart_time(policy.restart, job.plan().gpus());
  const auto losses = [&](bool waits) {
    return memory_losses_per_second(
        spec, nodes,
        {.copies = in_memory(spec) ? spec.checkpoint.copies : holders_of(job, spec, nodes),
         .stall = restart + peer_transfer(job.costs),
         .waits = waits});
  };
  if (!swaps)
    return losses(policy.kind == PolicyKind::kCheckpointRestart && policy.lost == LostNode::kWaitedFor);
  const double waiting = pool_is_empty(spec, setup);
  return waiting * losses(true) + (1 - waiting) * losses(false) +
         (in_memory(spec) ? 0 : corruption_found_at_once(spec, nodes));
}

// A slow link lengthens steps by the simulated effect, not by its own factor.
void price_slow_traffic(History& history, DegradedShapes& shapes) {
  constexpr double kHardly = 1 + 1e-9;  // slow is more than 1
  for (Incident& incident : history.incidents)
    if (incident.kind == IncidentKind::kSlow && incident.part == SlowPart::kTraffic)
      incident.factor = std::max(kHardly, shapes.slow_traffic(incident.factor));
}

// Of the key, or of what holds it where its value is a default.
SourceLocation nearest_place(const Scenario& scenario, std::string path) {
  while (!scenario.origins.contains(path) && path.find('.') != std::string::npos)
    path.resize(path.rfind('.'));
  return place_of(scenario, path);
}

GoodputSetup setup_of(GoodputJob& job, const FailureSpec& spec, bool describe) {
  Diagnostics diagnostics;
  std::optional<GoodputSetup> setup = set_up({.job = job, .spec = spec, .describe = describe}, diagnostics);
  throw_located(job.scenario, diagnostics);
  SC_CHECK(setup.has_value(), "a policy that is refused is refused with a reason");
  return *std::move(setup);
}

// The interval that was given, or that the policy has in place of one that nobody gave.
CheckpointSpec checkpoints_asked(const FailureSpec& spec, const GoodputSetup& setup) {
  CheckpointSpec checkpoint = spec.checkpoint;
  if (!setup.checkpoint_every) return checkpoint;
  checkpoint.rule = IntervalRule::kSteps;
  checkpoint.every_steps = *setup.checkpoint_every;
  return checkpoint;
}

// Checkpoints for so many losses, where the policy makes any.
void make_checkpoints(const GoodputJob& job, const CheckpointSpec& checkpoint, LossRate losses,
                      GoodputRun& ran) {
  ran.losses = losses;
  if (!ran.setup.checkpoints) return;
  Diagnostics diagnostics;
  if (checkpoint.rule == IntervalRule::kSteps)
    (void)is_countable({.steps = checkpoint.every_steps,
                        .iteration = ran.setup.ideal.duration,
                        .path = ran.setup.checkpoint_every ? "failures.policy.checkpoint_every"
                                                           : "failures.checkpoint.interval"},
                       diagnostics);
  ran.checkpointing = checkpointing_of(checkpoint,
                                       {.costs = job.costs,
                                        .nodes = ran.setup.job_nodes(),
                                        .gpus = job.plan().gpus(),
                                        .iteration = ran.setup.ideal.duration,
                                        .failures_per_s = losses.per_s},
                                       diagnostics);
  throw_located(job.scenario, diagnostics);
}

GoodputResult repeated(GoodputJob& job, const FailureSpec& spec, const GoodputRun& ran,
                       const GoodputRunRequest& request) {
  const FailureSpec seen = as_the_job_sees_it(spec);
  const HistoryFactory histories = [&](int repeat) {
    History history = history_of(seen, ran.setup.nodes, request.seed, repeat, ran.setup.spares);
    price_slow_traffic(history, job.shapes);
    return history;
  };
  const RepeatOptions options{
      .repeats = request.repeats, .threads = request.threads, .after_each = request.after_each};
  if (ran.setup.replay) return run_repeats(spec.horizon, histories, ran.setup.replay, options);
  const JobSpec job_spec{.horizon = spec.horizon,
                         .ideal = ran.setup.ideal,
                         .checkpointing = ran.checkpointing,
                         .slow_replicas = slow_replicas_of(job.shapes, spec.policy),
                         .timeline = request.timeline};
  return run_repeats(job_spec, histories, ran.setup.policy, options);
}

}  // namespace

void throw_located(const Scenario& scenario, const Diagnostics& diagnostics) {
  Diagnostics located;
  for (Diagnostic diagnostic : diagnostics.items()) {
    if (diagnostic.where.file.empty()) diagnostic.where = nearest_place(scenario, diagnostic.path);
    located.add(std::move(diagnostic));
  }
  located.throw_if_errors();
}

GoodputRun run_goodput(GoodputJob& job, const FailureSpec& spec, const GoodputRunRequest& request) {
  GoodputRun ran{.setup = setup_of(job, spec, request.describe)};
  const CheckpointSpec checkpoint = checkpoints_asked(spec, ran.setup);
  const double by_formula = failures_for_storage(job, spec, ran.setup);
  make_checkpoints(job, checkpoint, {.per_s = by_formula}, ran);

  const bool never = by_formula == 0 && !has_maintenance(spec);
  const bool counts = ran.checkpointing && !ran.setup.replay && !never && !goes_back_by_formula(spec);
  const bool given = checkpoint.rule == IntervalRule::kTime || checkpoint.rule == IntervalRule::kSteps;
  if (counts && !given) {
    constexpr int kPilots = 2, kPilotRepeats = 8;
    GoodputRunRequest pilot = request;
    pilot.repeats = kPilotRepeats;
    pilot.timeline = false;
    pilot.after_each = {};
    for (int i = 0; i < kPilots; ++i)
      make_checkpoints(job, checkpoint, losses_of(repeated(job, spec, ran, pilot), by_formula), ran);
  }
  ran.result = repeated(job, spec, ran, request);
  if (counts && given) ran.losses = losses_of(ran.result, by_formula);
  return ran;
}

int most_nodes_up(const FailureSpec& spec, const GoodputSetup& setup, std::uint64_t seed) {
  const History history = history_of(as_the_job_sees_it(spec), setup.nodes, seed, 0, setup.spares);
  Machines machines(history.nodes, history.all_up_at_start);
  int most = machines.up_count();
  for (const Incident& incident : history.incidents) {
    machines.apply(incident);
    most = std::max(most, machines.up_count());
  }
  return most;
}

}  // namespace stagecraft
