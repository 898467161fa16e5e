#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <variant>

#include "base/text.hpp"
#include "sim/goodput/processes/laws.hpp"
#include "sim/scenario/no_effect_listener.hpp"

namespace stagecraft {

namespace {

bool needs_repair(const FailureProcess& process) {
  return breaks_nodes(process.law) && std::ranges::any_of(process.causes, [](const Cause& cause) {
           return cause.severity == FailureSeverity::kNode && !cause.repair;
         });
}

// The most nodes that a trace of events or counts has at once.
int most_at_once(const TraceReplay& law) {
  int now = 0, most = 0;
  for (const TraceCount& count : law.trace.counts) most = std::max(most, scaled_count(law, count.available));
  if (law.trace.form != TraceForm::kEvents) return most;
  for (const TraceRow& row : law.trace.rows)
    most = std::max(most, now += row.event == TraceEvent::kAdd ? 1 : -1);
  return most;
}

void listen_to_trace(Listener& listener, const Scenario& scenario, const FailureProcess& process,
                     const std::string& path) {
  const auto* replay = std::get_if<TraceReplay>(&process.law);
  if (replay == nullptr || !scenario.cluster) return;
  const int nodes = scenario.cluster->server_count() + scenario.failures->policy.spares.value_or(0);
  const int most = most_at_once(*replay);
  if (most <= nodes) return;
  listener.warn(
      path + ".file", "surplus-nodes",
      fmt::format(
          "up to {} nodes are there at once, and the cluster has {}: additions beyond them are skipped", most,
          nodes));
}

// Rates and times of checkpoints that follow from one another.
void listen_to_checkpoints(Listener& listener, const CheckpointSpec& spec) {
  const bool sync = spec.mode == CheckpointMode::kSync;
  const char* writes = sync ? "failures.checkpoint.block says how long it takes"
                            : "failures.checkpoint.persist says how long it takes";
  listener.say("failures.checkpoint.", {"node_write", "storage_write"},
               sync ? spec.block.has_value() : spec.persist.has_value(), writes);
  listener.say("failures.checkpoint.", {"node_read", "storage_read"}, spec.load.has_value(),
               "failures.checkpoint.load says how long it takes");
  listener.say("failures.checkpoint.snapshot", spec.block.has_value(),
               "failures.checkpoint.block says how long it takes");
  listener.say("failures.checkpoint.bytes",
               spec.block.has_value() && spec.load.has_value() && (sync || spec.persist.has_value()),
               "the times of checkpoints are given");
}

bool announces(const FailureProcess& process) {
  return is_announced(process.law);
}

bool needs_no_detection(const FailureProcess& process) {
  return announces(process) || std::holds_alternative<FailSlow>(process.law);
}

// Detection of what is announced, or slows the job down and does not stop it. A list of causes always has it
// where a scenario is printed.
void listen_to_undetected(Listener& listener, const FailureProcess& process, const std::string& path) {
  if (!needs_no_detection(process)) return;
  const char* why =
      announces(process) ? "an announced removal needs no detection" : "a slow node does not stop the job";
  listener.say(path + ".detect", true, why);
}

// Waits of varuna for what never comes.
void listen_to_announcements(Listener& listener, const FailureSpec& spec) {
  if (spec.policy.kind != PolicyKind::kVaruna) return;
  listener.say("failures.policy.", {"announced_wait", "transient_wait", "notice"},
               !spec.policy.throughput.empty(), "a replay of a table of throughput has no such time");
  const bool announced = spec.policy.notice > Duration(0) || std::ranges::any_of(spec.processes, announces);
  listener.say("failures.policy.announced_wait", !announced,
               "nothing is announced: neither by failures.policy.notice nor by maintenance with a notice");
}

// Elastic stalls for as long, whenever within it a loss is detected. Wrong results are no loss.
void listen_to_detection(Listener& listener, const FailureSpec& spec) {
  if (spec.policy.kind != PolicyKind::kElastic) return;
  const Duration stall = spec.policy.stall;
  const auto listen = [&](const std::string& path, Duration detect) {
    if (detect > stall)
      listener.warn(path, "more-than-possible",
                    fmt::format("counts as {} where a replica fails: failures.policy.stall has it in it",
                                human(stall)));
  };
  for (std::size_t i = 0; i < spec.processes.size(); ++i) {
    const FailureProcess& process = spec.processes[i];
    if (!breaks_nodes(process.law) && !says_who_is_there(process.law)) continue;
    if (spec.detect) listen("failures.detect", *spec.detect);
    for (std::size_t c = 0; !spec.detect && c < process.causes.size(); ++c)
      for (const std::string& item :
           {std::string("failures.process"), fmt::format("failures.process.{}", i)}) {
        listen(item + ".detect", process.causes[c].detect);
        listen(fmt::format("{}.causes.{}.detect", item, c), process.causes[c].detect);
      }
  }
}

void listen_to_policy(Listener& listener, const Scenario& scenario) {
  const FailureSpec& spec = *scenario.failures;
  const PolicySpec& policy = spec.policy;
  const bool table = !policy.throughput.empty();
  const bool varuna = policy.kind == PolicyKind::kVaruna, bamboo = policy.kind == PolicyKind::kBamboo;
  const bool oobleck = policy.kind == PolicyKind::kOobleck;
  listener.say("failures.policy.swap", oobleck && policy.reconfigure.has_value(),
               "failures.policy.reconfigure is all of it");
  listener.say("failures.policy.reconfigure", varuna && !table,
               "without a table of throughput varuna takes failures.policy.restart");
  listener.say("failures.policy.checkpoint_every",
               varuna && !table && scenario.origins.contains("failures.checkpoint.interval"),
               "failures.checkpoint.interval says how often");
  listener.say("failures.policy.", {"pipelines", "stages"}, bamboo && !table,
               "without a table of throughput they are those of the job");
  listener.say("failures.policy.stages", (oobleck || varuna) && !table,
               "without a table of throughput the policy cuts its own");
  listener.say("failures.policy.pipelines", bamboo,
               "a replay has as many as nodes fill, of failures.policy.stages each");
  // The evaluations of these three are replayed where there is a table.
  if (!table || (!varuna && !bamboo && !oobleck)) return;
  const char* replay = "a replay of a table of throughput takes it from the policy";
  listener.say("failures.checkpoint.", {"interval", "persist", "load", "slowdown"}, true, replay);
  listener.say("failures.checkpoint.block", !varuna, replay);
  listener.say("failures.detect", true, replay);
}

}  // namespace

void listen_to_failures(Listener& listener, const Scenario& scenario) {
  if (!scenario.failures) return;
  const FailureSpec& spec = *scenario.failures;
  listen_to_checkpoints(listener, spec.checkpoint);
  listen_to_policy(listener, scenario);
  listen_to_announcements(listener, spec);
  listener.say("failures.repair", std::ranges::none_of(spec.processes, needs_repair),
               "no process breaks a node that this repair is for");
  listener.say("failures.checkpoint", spec.policy.kind == PolicyKind::kNone,
               "policy none writes no checkpoints");
  listener.say("failures.detect",
               !spec.processes.empty() && std::ranges::all_of(spec.processes, needs_no_detection),
               "nothing that happens has to be detected");
  const char* overruled = "failures.detect is for every cause";
  if (spec.processes.size() == 1) listen_to_undetected(listener, spec.processes.front(), "failures.process");
  listener.say("failures.process.detect", spec.detect.has_value(), overruled);
  for (std::size_t i = 0; i < spec.processes.size(); ++i) {
    const std::string item = fmt::format("failures.process.{}", i);
    listen_to_undetected(listener, spec.processes[i], item);
    listener.say(item + ".detect", spec.detect.has_value(), overruled);
    listen_to_trace(listener, scenario, spec.processes[i], item);
    if (spec.processes.size() == 1)
      listen_to_trace(listener, scenario, spec.processes[i], "failures.process");
  }
  listen_to_detection(listener, spec);
}

}  // namespace stagecraft
