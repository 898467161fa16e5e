#include "sim/scenario/load_failure_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "sim/goodput/processes/laws.hpp"
#include "sim/goodput/trace_file.hpp"
#include "sim/scenario/trace_source.hpp"

namespace stagecraft {

namespace {

// Bounds that no cluster reaches: they keep a typing mistake from becoming an endless run.
constexpr double kMaxRate = 10'000;  // per node and day: one in nine seconds
constexpr std::int64_t kMaxNodes = 1'000'000;
constexpr std::size_t kMaxCauses = 255;  // the number of a cause has eight bits

constexpr unsigned bits(std::initializer_list<std::string_view> kinds) {
  unsigned all = 0;
  for (std::size_t i = 0; i < std::size(kFailureLawNames); ++i)
    for (const std::string_view kind : kinds) all |= kind == kFailureLawNames[i] ? 1u << i : 0u;
  return all;
}

template <class... Laws>
constexpr unsigned bits_of_breaking(std::type_identity<std::variant<Laws...>>) {
  return ((Laws::kBreaksNodes ? bits({Laws::kName}) : 0u) | ...);
}

// Keys that not every kind has.
struct ProcessKey {
  const char* name;
  unsigned read_by;
};
constexpr unsigned kBreaking = bits_of_breaking(std::type_identity<FailureLaw>()),
                   kBursts = bits({BurstFailures::kName}), kTrace = bits({TraceReplay::kName}),
                   kSpot = bits({HourlySpot::kName}), kSlow = bits({FailSlow::kName}),
                   kMaintenance = bits({Maintenance::kName});
constexpr std::array kProcessKeys{
    ProcessKey{"rate_per_node_day", bits({ExponentialFailures::kName, WeibullNodeFailures::kName,
                                          WeibullClusterFailures::kName, SilentCorruption::kName}) |
                                        kBursts | kSlow},
    ProcessKey{"exponent", bits({ExponentialFailures::kName})},
    ProcessKey{"reference_nodes", bits({ExponentialFailures::kName})},
    ProcessKey{"lemon_factor",
               bits({ExponentialFailures::kName, ComponentFailures::kName, WeibullNodeFailures::kName})},
    ProcessKey{"shape", bits({WeibullNodeFailures::kName, WeibullClusterFailures::kName})},
    ProcessKey{"bursts_per_day", kBursts},
    ProcessKey{"domain_nodes", kBursts},
    ProcessKey{"mean_size", kBursts},
    ProcessKey{"sizes", kBursts},
    ProcessKey{"file", kTrace},
    ProcessKey{"scale", kTrace},
    ProcessKey{"offset", kTrace},
    ProcessKey{"repeat", kTrace},
    ProcessKey{"count_scale", kTrace},
    ProcessKey{"servers", kTrace},
    ProcessKey{"leave_out", kTrace},
    ProcessKey{"creation", kTrace | kSpot},
    ProcessKey{"removal", kSpot},
    ProcessKey{"addition", kSpot},
    ProcessKey{"random_additions", kSpot},
    ProcessKey{"start_hour", kSpot},
    ProcessKey{"share", kSlow},
    ProcessKey{"slowdown", kSlow},
    ProcessKey{"shortest", kSlow},
    ProcessKey{"longest", kSlow},
    ProcessKey{"part", kSlow},
    ProcessKey{"discovery", bits({SilentCorruption::kName})},
    ProcessKey{"period", kMaintenance},
    ProcessKey{"jitter", kMaintenance},
    ProcessKey{"notice", kMaintenance},
    ProcessKey{"duration", kMaintenance},
    ProcessKey{"severity", kBreaking},
    ProcessKey{"repair", kBreaking}};

void must_be_positive(YamlMap& map, const char* key, Duration time, const char* what) {
  if (time > Duration(0)) return;
  map.error(key, "out-of-range", fmt::format("{} takes time", what), "give a time above 0");
}

double rate_of(DefaultedMap& in) {
  return in.number("rate_per_node_day", {.min = 0, .max = kMaxRate});
}

double lemon_factor_of(DefaultedMap& in) {
  return in.number("lemon_factor", {.min = 1, .max = 10});
}

double shape_of(DefaultedMap& in) {
  return in.number("shape", {.min = 0.05, .max = 100}, "weibull_shape");
}

// Why things fail where the scenario does not say.
struct Fallback {
  bool mix = false;                     // the causes of the defaults
  std::vector<std::string> names = {};  // otherwise, each as likely
  bool announced = false;               // nothing to detect
};

class ProcessLoader {
 public:
  ProcessLoader(YamlMap& map, const ProcessContext& context)
      : map_(map), context_(context), in_(map, context.defaults) {}

  FailureProcess load();

 private:
  template <class... Laws>
  FailureLaw load_law(std::size_t kind, std::type_identity<std::variant<Laws...>>);
  template <class Law>
  FailureLaw load_as();
  void refuse_keys_of_others(std::size_t kind);
  void load(ExponentialFailures& law);
  void load(ComponentFailures& law);
  void load(WeibullNodeFailures& law);
  void load(WeibullClusterFailures& law);
  void load(BurstFailures& law);
  void load(TraceReplay& law);
  void load(HourlySpot& law);
  void load(FailSlow& law);
  void load(SilentCorruption& law);
  void load(Maintenance& law);

  void check_trace(TraceReplay& law);
  void name_fault_classes(const TraceReplay& law);
  void load_sizes(BurstFailures& law, const YamlNode& node);
  std::array<double, 24> load_hours(const char* key, const char* name);

  std::vector<Cause> load_causes();
  void load_cause_list(const YamlNode& list, const std::string& path, std::vector<Cause>& causes);
  Cause load_cause(YamlMap& item, bool with_share);
  Cause one_cause(std::string name);
  void check_shares(const std::vector<Cause>& causes);

  YamlMap& map_;
  const ProcessContext& context_;
  DefaultedMap in_;
  Fallback fallback_;
  bool breaks_ = false;        // failures that are repaired: severity and repair can be said
  bool components_ = false;    // each with a rate in place of a share
  std::vector<double> rates_;  // rates of components, filled by load_cause()
};

FailureProcess ProcessLoader::load() {
  const ErrorWatch watch(map_.diagnostics());
  const std::size_t kind = map_.choice("kind", to_strings(kFailureLawNames), 0);
  const bool is_kind = watch.clean();
  FailureProcess process;
  process.law = load_law(kind, std::type_identity<FailureLaw>());
  process.causes = load_causes();
  if (is_kind)
    refuse_keys_of_others(kind);
  else  // whose keys these are is not known
    for (const ProcessKey& key : kProcessKeys) (void)map_.has(key.name);
  if (auto* components = std::get_if<ComponentFailures>(&process.law))
    components->rates_per_node_day = rates_;
  map_.finish();
  return process;
}

void ProcessLoader::refuse_keys_of_others(std::size_t kind) {
  if (!map_.has_unasked()) return;
  for (const ProcessKey& key : kProcessKeys) {
    if ((key.read_by >> kind & 1u) != 0 || !map_.has(key.name)) continue;
    std::vector<std::string> readers;
    for (std::size_t i = 0; i < std::size(kFailureLawNames); ++i)
      if ((key.read_by >> i & 1u) != 0) readers.emplace_back(kFailureLawNames[i]);
    map_.error(key.name, "contradiction",
               fmt::format("is for {}, and the kind is {}", join(readers, ", "), kFailureLawNames[kind]),
               "leave it out");
  }
}

// The table of loaders has the order of the laws.
template <class... Laws>
FailureLaw ProcessLoader::load_law(std::size_t kind, std::type_identity<std::variant<Laws...>>) {
  constexpr std::array kLoaders{&ProcessLoader::load_as<Laws>...};
  return (this->*kLoaders.at(kind))();
}

template <class Law>
FailureLaw ProcessLoader::load_as() {
  breaks_ = fallback_.mix = Law::kBreaksNodes;
  Law law;
  load(law);
  return law;
}

void ProcessLoader::load(ExponentialFailures& law) {
  law.rate_per_node_day = rate_of(in_);
  law.exponent = map_.number("exponent", {.min = -10, .max = 10, .fallback = 0.0});
  law.reference_nodes = static_cast<int>(
      map_.integer("reference_nodes", {.min = 1, .max = kMaxNodes, .fallback = nodes_of(context_.cluster)}));
  if (law.exponent != 0 && !map_.has("reference_nodes"))
    map_.error("reference_nodes", "missing-key", "is required beside an exponent, but not given",
               "say on how many nodes the rate was measured");
  law.lemon_factor = lemon_factor_of(in_);
}

void ProcessLoader::load(ComponentFailures& law) {
  components_ = true;
  if (!map_.has("causes"))
    map_.error("causes", "missing-key", "is required, but not given",
               "list the components: [{name: disk, rate_per_node_day: 0.0001}]");
  law.lemon_factor = lemon_factor_of(in_);
}

void ProcessLoader::load(WeibullNodeFailures& law) {
  law.rate_per_node_day = rate_of(in_);
  law.shape = shape_of(in_);
  law.lemon_factor = lemon_factor_of(in_);
}

void ProcessLoader::load(WeibullClusterFailures& law) {
  law.rate_per_node_day = rate_of(in_);
  law.shape = shape_of(in_);
}

void ProcessLoader::load_sizes(BurstFailures& law, const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kMap || node.entries.empty())
    return map_.error("sizes", "not-a-mapping", "is a mapping of nodes to how often so many are hit",
                      "write {1: 499, 2: 20, 8: 2}");
  for (const YamlEntry& entry : node.entries) {
    const auto size = parse_integer(entry.key);
    const auto weight = parse_number(entry.value.text);
    if (size && *size >= 1 && *size <= kMaxNodes && weight && *weight > 0)
      law.sizes.emplace_back(static_cast<int>(*size), *weight);
    else
      map_.error(
          "sizes", "bad-number",
          fmt::format("{}: {} is not a number of nodes and a weight above 0", entry.key, entry.value.text),
          "write {1: 499, 2: 20, 8: 2}");
  }
}

void ProcessLoader::load(BurstFailures& law) {
  if (map_.has("bursts_per_day")) {
    law.bursts_per_day = map_.number("bursts_per_day", {.min = 0, .max = kMaxRate});
    if (map_.has("rate_per_node_day"))
      map_.error("rate_per_node_day", "contradiction", "does not go with bursts_per_day",
                 "leave one of them out");
  } else {
    law.rate_per_node_day = rate_of(in_);
  }
  const bool leaves = context_.cluster != nullptr && context_.cluster->fabric.has_leaves();
  const int domain = leaves ? context_.cluster->fabric.nodes_per_leaf : nodes_of(context_.cluster);
  law.domain_nodes =
      static_cast<int>(map_.integer("domain_nodes", {.min = 1, .max = kMaxNodes, .fallback = domain}));
  if (map_.has("mean_size")) {
    law.mean_size = map_.number("mean_size", {.min = 1, .max = kMaxNodes});
    if (map_.has("sizes"))
      map_.error("sizes", "contradiction", "does not go with mean_size", "leave one of them out");
  } else if (const YamlNode* sizes = map_.get("sizes")) {
    map_.accepts("sizes", {});
    load_sizes(law, *sizes);
  } else if (const YamlNode* usual = context_.defaults.node(map_.path_of("sizes"), "burst_sizes")) {
    load_sizes(law, *usual);
  }
}

void ProcessLoader::check_trace(TraceReplay& law) {
  const bool counts = law.trace.form == TraceForm::kCounts, faults = law.trace.form == TraceForm::kFaults;
  const Duration end = counts ? law.trace.counts.back().time : law.trace.rows.back().time;
  if (law.repeat && end == Duration(0))
    map_.error("repeat", "contradiction", "a trace that lasts no time cannot be repeated", "leave it out");
  if (law.offset > end)
    map_.error("offset", "out-of-range",
               fmt::format("{} is beyond the end of the trace, {}", human(law.offset), human(end)));
  const auto only_for = [&](const char* key, bool fits, const char* form) {
    if (!fits && map_.has(key))
      map_.error(key, "contradiction", fmt::format("is for traces of {}", form), "leave it out");
  };
  only_for("count_scale", counts, "counts (time_s,available)");
  only_for("servers", faults, "faults (fault_start, fault_end)");
  only_for("leave_out", faults, "faults (fault_start, fault_end)");
  only_for("creation", !faults, "additions");
  for (const std::string& name : law.leave_out)
    if (faults && std::ranges::find(law.trace.causes, name) == law.trace.causes.end())
      map_.error("leave_out", "unknown-name", fmt::format("{} is no class of this trace", in_quotes(name)),
                 suggest(name, law.trace.causes, 20));
  if (faults && law.servers && *law.servers < static_cast<int>(law.trace.nodes.size()))
    map_.error(
        "servers", "out-of-range",
        fmt::format("{} servers were watched, but {} of them failed", *law.servers, law.trace.nodes.size()));
}

// A trace of faults names its causes itself.
void ProcessLoader::name_fault_classes(const TraceReplay& law) {
  for (const std::string& name : law.trace.causes)
    if (std::ranges::find(law.leave_out, name) == law.leave_out.end()) fallback_.names.push_back(name);
  if (fallback_.names.empty()) fallback_.names.emplace_back("fault");
}

void ProcessLoader::load(TraceReplay& law) {
  const ErrorWatch watch(map_.diagnostics());
  law.file = map_.text("file");
  law.scale = map_.number("scale", {.min = 1e-6, .max = 1e6, .fallback = 1.0});
  law.offset = map_.duration("offset", Duration(0));
  law.repeat = map_.boolean("repeat", false);
  law.count_scale = map_.number("count_scale", {.min = 1e-6, .max = 1e6, .fallback = 1.0});
  if (map_.has("servers"))
    law.servers = static_cast<int>(map_.integer("servers", {.min = 1, .max = kMaxNodes}));
  law.leave_out = map_.texts("leave_out");
  const bool given = map_.has("creation");
  if (given) law.creation = map_.duration("creation");
  if (watch.clean()) {
    if (const Trace* trace = find_trace(map_, "file", law.file, context_.places)) {
      law.trace = *trace;
      check_trace(law);
    }
  }
  if (law.trace.form == TraceForm::kFaults) {
    name_fault_classes(law);
  } else {
    if (!given) law.creation = in_.duration("creation");
    fallback_.names = {"preemption"};
  }
}

std::array<double, 24> ProcessLoader::load_hours(const char* key, const char* name) {
  std::array<double, 24> hours{};
  const ErrorWatch watch(map_.diagnostics());
  const std::vector<double> given = map_.has(key) ? map_.numbers(key, {.min = 0, .max = 1})
                                                  : context_.defaults.numbers(map_.path_of(key), name);
  if (given.size() == hours.size())
    std::ranges::copy(given, hours.begin());
  else if (given.size() == 1)
    hours.fill(given.front());
  else if (watch.clean())
    map_.error(key, "wrong-length", fmt::format("{} chances are neither 1 nor 24", given.size()),
               "give one for each hour of the day, or one for all");
  return hours;
}

void ProcessLoader::load(HourlySpot& law) {
  law.remove = load_hours("removal", "spot_remove");
  law.random_additions = map_.boolean("random_additions", false);
  if (!law.random_additions)
    law.add = load_hours("addition", "spot_add");
  else if (map_.has("addition"))
    map_.error("addition", "contradiction", "does not go with random_additions, which draws it",
               "leave one of them out");
  law.start_hour = static_cast<int>(map_.integer("start_hour", {.min = 0, .max = 23, .fallback = 0}));
  law.creation = in_.duration("creation");
  fallback_.names = {"preemption"};
}

void ProcessLoader::load(FailSlow& law) {
  if (map_.has("rate_per_node_day")) {
    law.rate_per_node_day = map_.number("rate_per_node_day", {.min = 0, .max = kMaxRate});
    if (map_.has("share"))
      map_.error("share", "contradiction", "does not go with rate_per_node_day", "leave one of them out");
  } else {
    law.share = in_.number("share", {.min = 0, .max = 0.99}, "slow_share");
  }
  const ErrorWatch watch(map_.diagnostics());
  const std::vector<double> factors = map_.has("slowdown")
                                          ? map_.numbers("slowdown", {.min = 1, .max = 1e6})
                                          : std::vector<double>{in_.number("slowdown", {}, "slow_factor")};
  if (watch.clean()) {
    if (factors.empty() || factors.size() > 2 || factors.front() > factors.back() || factors.back() <= 1)
      map_.error("slowdown", "out-of-range", "is a factor above 1, or the least and the largest of them",
                 "write 1.1, or [1.1, 2]");
    else
      law.low_factor = factors.front(), law.high_factor = factors.back();
  }
  law.shortest = in_.duration("shortest", "slow_shortest");
  law.longest = in_.duration("longest", "slow_longest");
  must_be_positive(map_, "shortest", law.shortest, "slowness");
  if (law.shortest > law.longest)
    map_.error("longest", "contradiction",
               fmt::format("{} is less than the shortest, {}", human(law.longest), human(law.shortest)));
  law.part = map_.choose("part", kSlowPartNames, SlowPart::kCompute);
  fallback_.names = {law.part == SlowPart::kTraffic ? "slow link" : "slow node"};
}

void ProcessLoader::load(SilentCorruption& law) {
  law.rate_per_node_day = in_.number("rate_per_node_day", {.min = 0, .max = kMaxRate}, "corruption_rate");
  if (!map_.has("discovery"))
    map_.error("discovery", "missing-key", "is required, but not given",
               "say how long wrong results stay unnoticed, on average");
  else
    law.discovery = map_.duration("discovery");
  fallback_.names = {"silent corruption"};
}

void ProcessLoader::load(Maintenance& law) {
  law.period = in_.duration("period", "maintenance_period");
  law.jitter = in_.duration("jitter", "maintenance_jitter");
  law.notice = map_.duration("notice");
  law.duration = map_.duration("duration");
  must_be_positive(map_, "period", law.period, "a period");
  if (law.period > Duration(0) && law.jitter > law.period / 2)
    map_.error("jitter", "out-of-range",
               fmt::format("{} is more than half the period, {}", human(law.jitter), human(law.period)),
               "one maintenance comes after the other");
  fallback_ = {.names = {"maintenance"}, .announced = is_announced(law)};
}

Cause ProcessLoader::one_cause(std::string name) {
  Cause cause{.name = std::move(name)};
  cause.detect = in_.duration("detect");
  if (!breaks_) return cause;
  cause.severity = map_.choose("severity", kSeverityNames, FailureSeverity::kNode);
  if (map_.has("repair")) cause.repair = load_repair(map_, "repair", context_);
  return cause;
}

Cause ProcessLoader::load_cause(YamlMap& item, bool with_share) {
  Cause cause;
  cause.name = item.text("name");
  if (components_)
    rates_.push_back(item.number("rate_per_node_day", {.min = 0, .max = kMaxRate}));
  else
    cause.share = with_share ? item.number("share", {.min = 0, .max = 1})
                             : item.number("share", {.min = 0, .max = 1, .fallback = 1.0});
  cause.detect = DefaultedMap(item, context_.defaults).duration("detect");
  if (breaks_) {
    cause.severity = item.choose("severity", kSeverityNames, FailureSeverity::kNode);
    if (item.has("repair")) cause.repair = load_repair(item, "repair", context_);
  }
  item.finish();
  return cause;
}

void ProcessLoader::check_shares(const std::vector<Cause>& causes) {
  double sum = 0;
  for (const Cause& cause : causes) sum += cause.share;
  if (components_ || std::abs(sum - 1) <= 1e-6) return;
  map_.error("causes", "bad-shares", fmt::format("the shares add up to {:.6g}, not to 1", sum),
             "give the rest a cause of its own: {name: other, share: …}");
}

void ProcessLoader::load_cause_list(const YamlNode& list, const std::string& path,
                                    std::vector<Cause>& causes) {
  const ErrorWatch watch(map_.diagnostics());
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    YamlMap item(&list.items[i], fmt::format("{}.{}", path, i), list.items[i].where, map_.diagnostics(),
                 &context_.origins);
    Cause cause = load_cause(item, list.items.size() > 1);
    const auto same = [&](const Cause& other) { return other.name == cause.name; };
    if (std::ranges::any_of(causes, same))
      item.error("name", "duplicate-name", fmt::format("{} is named twice", in_quotes(cause.name)),
                 "add their shares up, or give one another name");
    causes.push_back(std::move(cause));
  }
  if (causes.empty() || causes.size() > kMaxCauses)
    map_.error("causes", "wrong-length", fmt::format("{} causes: name 1 to {}", causes.size(), kMaxCauses));
  else if (watch.clean())
    check_shares(causes);
}

// The list of the scenario, or the one cause given by its keys, or the default of the kind.
std::vector<Cause> ProcessLoader::load_causes() {
  std::vector<Cause> causes;
  const YamlNode* list = map_.get("causes");
  if (list != nullptr) {
    for (const char* key : {"cause", "severity", "detect", "repair"})
      if (map_.has(key))
        map_.error(key, "contradiction", "does not go with causes, each of which has its own",
                   "leave one of them out");
    if (list->kind == YamlNode::Kind::kSequence)
      load_cause_list(*list, map_.path_of("causes"), causes);
    else
      map_.error(
          "causes", "not-a-list", "is a list of causes",
          "write [{name: gpu, share: 0.7, severity: node}, {name: software, share: 0.3, severity: process}]");
    if (causes.empty()) causes.emplace_back();
    return causes;
  }
  if (map_.has("cause")) return {one_cause(map_.text("cause"))};
  if (!fallback_.mix) {
    for (const std::string& name : fallback_.names)
      causes.push_back(fallback_.announced && !map_.has("detect") ? Cause{.name = name} : one_cause(name));
    for (Cause& cause : causes) cause.share = 1.0 / static_cast<double>(causes.size());
    return causes;
  }
  if (map_.has("severity") || map_.has("detect") || map_.has("repair")) return {one_cause("failure")};
  const YamlNode* usual = components_ ? nullptr : context_.defaults.node(map_.path_of("causes"), "causes");
  if (usual != nullptr) load_cause_list(*usual, "causes.value", causes);
  if (causes.empty()) causes.emplace_back();
  return causes;
}

}  // namespace

int nodes_of(const ClusterSpec* cluster) {
  std::int64_t nodes = 0;
  if (cluster != nullptr)
    for (const NodeGroup& group : cluster->groups) nodes += group.count;
  return static_cast<int>(std::clamp<std::int64_t>(nodes, 1, kMaxNodes));
}

FailureProcess load_failure_process(YamlMap& map, const ProcessContext& context) {
  return ProcessLoader(map, context).load();
}

RepairSpec load_repair(YamlMap& map, const char* key, const ProcessContext& context) {
  RepairSpec spec;
  const YamlNode* node = map.get(key);
  const bool scalar = node != nullptr && node->kind == YamlNode::Kind::kScalar;
  if (scalar && std::ranges::find(kRepairNames, node->text) == std::end(kRepairNames)) {
    spec.kind = RepairKind::kConstant;
    spec.time = map.duration(key);
    return spec;
  }
  YamlMap inner = scalar ? YamlMap(nullptr, map.path_of(key), node->where, map.diagnostics()) : map.map(key);
  const std::size_t kind =
      scalar ? map.choice(key, to_strings(kRepairNames)) : inner.choice("kind", to_strings(kRepairNames), 0);
  spec.kind = static_cast<RepairKind>(kind);
  if (spec.kind == RepairKind::kConstant) spec.time = inner.duration("time");
  if (spec.kind == RepairKind::kEmpirical) {
    const bool given = inner.has("file");
    spec.file = given ? inner.text("file") : context.defaults.text(map.path_of(key), "repair");
    YamlMap& where = given ? inner : map;
    if (const Trace* trace = find_trace(where, given ? "file" : key, spec.file, context.places)) {
      if (trace->form == TraceForm::kFaults) spec.times = fault_durations(*trace);
      if (spec.times.empty())
        where.error(given ? "file" : key, "not-a-fault-trace", "no fault of this trace has an end",
                    "name a trace of fault_start and fault_end");
    }
  }
  inner.finish();
  return spec;
}

}  // namespace stagecraft
