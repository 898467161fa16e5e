#include "sim/scenario/failures_to_yaml.hpp"

#include <fmt/format.h>

#include <string>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "sim/goodput/processes/laws.hpp"

namespace stagecraft {

namespace {

std::string reals(std::span<const double> list) {
  return list_of(list, [](double value) { return fmt::format("{}", value); });
}

std::string quoted(const std::string& text) {
  return JsonWriter().value(text).str();
}

void print_repair(Emitter& out, const RepairSpec& repair) {
  if (repair.kind == RepairKind::kNone) return out.field("repair", "none");
  if (repair.kind == RepairKind::kConstant) return out.field("repair", quantity(repair.time));
  out.open("repair");
  out.field("kind", word(repair.kind, kRepairNames));
  out.text("file", repair.file);
  out.close();
}

// The keys of each law but its kind and causes.
class LawPrinter {
 public:
  explicit LawPrinter(Emitter& out) : out_(out) {}

  void operator()(const ExponentialFailures& law) const {
    out_.real("rate_per_node_day", law.rate_per_node_day);
    out_.real("exponent", law.exponent);
    out_.number("reference_nodes", law.reference_nodes);
    out_.real("lemon_factor", law.lemon_factor);
  }
  void operator()(const ComponentFailures& law) const { out_.real("lemon_factor", law.lemon_factor); }
  void operator()(const WeibullNodeFailures& law) const {
    out_.real("rate_per_node_day", law.rate_per_node_day);
    out_.real("shape", law.shape);
    out_.real("lemon_factor", law.lemon_factor);
  }
  void operator()(const WeibullClusterFailures& law) const {
    out_.real("rate_per_node_day", law.rate_per_node_day);
    out_.real("shape", law.shape);
  }
  void operator()(const BurstFailures& law) const {
    if (law.bursts_per_day)
      out_.real("bursts_per_day", *law.bursts_per_day);
    else
      out_.real("rate_per_node_day", law.rate_per_node_day);
    out_.number("domain_nodes", law.domain_nodes);
    if (law.sizes.empty()) return out_.real("mean_size", law.mean_size);
    out_.open("sizes");
    for (const auto& [nodes, weight] : law.sizes) out_.real(std::to_string(nodes), weight);
    out_.close();
  }
  void operator()(const TraceReplay& law) const {
    const bool faults = law.trace.form == TraceForm::kFaults;
    out_.text("file", law.file);
    out_.real("scale", law.scale);
    out_.field("offset", quantity(law.offset));
    out_.flag("repeat", law.repeat);
    if (law.trace.form == TraceForm::kCounts) out_.real("count_scale", law.count_scale);
    if (law.servers) out_.number("servers", *law.servers);
    if (!law.leave_out.empty()) out_.field("leave_out", list_of(law.leave_out, quoted));
    if (!faults) out_.field("creation", quantity(law.creation));
  }
  void operator()(const HourlySpot& law) const {
    out_.field("removal", reals(law.remove));
    out_.flag("random_additions", law.random_additions);
    if (!law.random_additions) out_.field("addition", reals(law.add));
    out_.number("start_hour", law.start_hour);
    out_.field("creation", quantity(law.creation));
  }
  void operator()(const FailSlow& law) const {
    if (law.rate_per_node_day)
      out_.real("rate_per_node_day", *law.rate_per_node_day);
    else
      out_.real("share", law.share);
    out_.field("slowdown", fmt::format("[{}, {}]", law.low_factor, law.high_factor));
    out_.field("shortest", quantity(law.shortest));
    out_.field("longest", quantity(law.longest));
    out_.field("part", word(law.part, kSlowPartNames));
  }
  void operator()(const SilentCorruption& law) const {
    out_.real("rate_per_node_day", law.rate_per_node_day);
    out_.field("discovery", quantity(law.discovery));
  }
  void operator()(const Maintenance& law) const {
    out_.field("period", quantity(law.period));
    out_.field("jitter", quantity(law.jitter));
    out_.field("notice", quantity(law.notice));
    out_.field("duration", quantity(law.duration));
  }

 private:
  Emitter& out_;
};

void print_process(Emitter& out, const FailureProcess& process) {
  const auto* components = std::get_if<ComponentFailures>(&process.law);
  out.item();
  out.field("kind", kFailureLawNames[process.law.index()]);
  std::visit(LawPrinter(out), process.law);
  out.open("causes");
  for (std::size_t i = 0; i < process.causes.size(); ++i) {
    const Cause& cause = process.causes[i];
    out.item();
    out.text("name", cause.name);
    if (components != nullptr)
      out.real("rate_per_node_day", components->rates_per_node_day[i]);
    else
      out.real("share", cause.share);
    out.field("detect", quantity(cause.detect));
    if (breaks_nodes(process.law)) {
      out.field("severity", word(cause.severity, kSeverityNames));
      if (cause.repair) print_repair(out, *cause.repair);
    }
    out.close();
  }
  out.close();
  out.close();
}

void print_tables(Emitter& out, const PolicySpec& policy) {
  if (policy.restart.size() == 1) {
    out.field("restart", quantity(policy.restart.front().second));
  } else {
    out.open("restart");
    for (const auto& [gpus, time] : policy.restart) out.field(std::to_string(gpus), quantity(time));
    out.close();
  }
  if (policy.throughput.empty()) return;
  out.open("throughput");
  for (const auto& [nodes, rate] : policy.throughput) out.real(std::to_string(nodes), rate);
  out.close();
  if (policy.samples_per_step > 0) out.number("samples_per_step", policy.samples_per_step);
}

void print_bamboo(Emitter& out, const PolicySpec& policy) {
  out.field("global_rendezvous", quantity(policy.global_rendezvous));
  out.field("local_rendezvous", quantity(policy.local_rendezvous));
  out.real("takeover_slowdown", policy.takeover_slowdown);
  out.real("rebalance_threshold", policy.rebalance_threshold);
  if (policy.pipelines > 0) out.number("pipelines", policy.pipelines);
  if (policy.stages > 0) out.number("stages", policy.stages);
}

void print_varuna(Emitter& out, const PolicySpec& policy) {
  out.number("checkpoint_every", policy.checkpoint_every);
  out.field("transient_wait", quantity(policy.transient_wait));
  out.field("announced_wait", quantity(policy.announced_wait));
  out.field("notice", quantity(policy.notice));
  if (policy.stages > 0) out.number("stages", policy.stages);
}

void print_spares(Emitter& out, const PolicySpec& policy) {
  if (policy.spares) out.number("spares", *policy.spares);
  out.field("swap", quantity(policy.swap));
  out.field("state", word(policy.state, kStateSourceNames));
  if (policy.backup) out.real("backup", *policy.backup);
  const SlowRungs& slow = policy.slow;
  if (!slow.any()) return out.field("slow_nodes", "ignore");
  const bool held[] = {slow.rebalance, slow.exchange, slow.restart};
  std::vector<std::string> rungs;
  for (std::size_t i = 0; i < std::size(held); ++i)
    if (held[i]) rungs.emplace_back(kRungNames[i]);
  out.open("slow_nodes");
  out.field("rungs", "[" + join(rungs, ", ") + "]");
  out.real("notice", slow.notice);
  if (slow.lasts) out.field("lasts", quantity(*slow.lasts));
  out.close();
}

void print_own_keys(Emitter& out, const PolicySpec& policy) {
  switch (policy.kind) {
    case PolicyKind::kCheckpointRestart:
    case PolicyKind::kNone:
      return out.field("lost", word(policy.lost, kLostNodeNames));
    case PolicyKind::kHotSpares:
      return print_spares(out, policy);
    case PolicyKind::kOobleck:
      out.field("swap", quantity(policy.swap));
      out.number("max_failures", policy.max_failures);
      out.field("cost", policy.simulated_cost ? "simulated" : "paper");
      if (policy.stages > 0) out.number("stages", policy.stages);
      return out.flag("recompose_on_join", policy.recompose_on_join);
    case PolicyKind::kBamboo:
      return print_bamboo(out, policy);
    case PolicyKind::kVaruna:
      return print_varuna(out, policy);
    case PolicyKind::kElastic:
      out.number("min_replicas", policy.min_replicas);
      out.field("stall", quantity(policy.stall));
      out.field("degraded", quantity(policy.degraded));
      out.field("rejoin", quantity(policy.rejoin));
      out.field("quorum", quantity(policy.quorum));
      if (policy.spares) out.number("spares", *policy.spares);
      return out.flag("keep_batch", policy.keep_batch);
    case PolicyKind::kRecycle:
      out.field("swap", quantity(policy.swap));
      return out.flag("fill_bubbles", policy.fill_bubbles);
  }
}

void print_policy(Emitter& out, const PolicySpec& policy) {
  const bool has_rules = policy.kind == PolicyKind::kOobleck || policy.kind == PolicyKind::kVaruna ||
                         policy.kind == PolicyKind::kBamboo;
  out.open("policy");
  out.field("name", word(policy.kind, kPolicyNames));
  if (has_rules) out.field("rules", word(policy.rules, kRulesNames));
  print_tables(out, policy);
  if (policy.reconfigure) out.field("reconfigure", quantity(*policy.reconfigure));
  print_own_keys(out, policy);
  out.close();
}

std::string interval_of(const CheckpointSpec& spec) {
  if (spec.rule == IntervalRule::kTime) return quantity(spec.interval);
  if (spec.rule == IntervalRule::kSteps) return fmt::format("{} steps", spec.every_steps);
  return std::string(word(spec.rule, kIntervalRuleNames));
}

void print_checkpoint(Emitter& out, const CheckpointSpec& spec) {
  const auto rate = [&](const char* key, Bandwidth value) {
    if (value > Bandwidth(0)) out.field(key, quantity(value));
  };
  out.open("checkpoint");
  out.field("mode", word(spec.mode, kCheckpointModeNames));
  out.field("interval", interval_of(spec));
  if (spec.block) out.field("block", quantity(*spec.block));
  if (spec.persist) out.field("persist", quantity(*spec.persist));
  if (spec.load) out.field("load", quantity(*spec.load));
  if (spec.bytes) out.field("bytes", quantity(*spec.bytes));
  rate("node_write", spec.node_write);
  rate("node_read", spec.node_read);
  rate("storage_write", spec.storage_write);
  rate("storage_read", spec.storage_read);
  rate("snapshot", spec.snapshot);
  if (spec.mode != CheckpointMode::kSync) out.real("slowdown", spec.slowdown);
  if (spec.mode == CheckpointMode::kInMemory) out.number("copies", spec.copies);
  out.close();
}

}  // namespace

void print_failures(Emitter& out, const FailureSpec& spec) {
  if (spec.processes.empty()) {
    out.field("process", "[]");
  } else {
    out.open("process");
    for (const FailureProcess& process : spec.processes) print_process(out, process);
    out.close();
  }
  print_policy(out, spec.policy);
  print_checkpoint(out, spec.checkpoint);
  print_repair(out, spec.repair);
  if (spec.detect) out.field("detect", quantity(*spec.detect));
  out.field("horizon", quantity(spec.horizon));
  out.number("repeats", spec.repeats);
}

}  // namespace stagecraft
