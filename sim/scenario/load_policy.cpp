#include "sim/scenario/load_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "sim/scenario/load_failure_process.hpp"

namespace stagecraft {

namespace {

// Bounds that no cluster reaches: they keep a typing mistake from becoming an endless run.
constexpr std::int64_t kMaxPolicyNodes = 1'000'000;
constexpr std::int64_t kMaxSpares = 100'000;
constexpr std::int64_t kMaxPolicyGpus = 100'000'000;
constexpr std::int64_t kMaxSteps = 1'000'000'000;
constexpr double kLeastSamplesPerSecond = 1e-6, kMostSamplesPerSecond = 1e9;
constexpr double kMaxFactor = 1e6;

constexpr unsigned bit(PolicyKind kind) {
  return 1u << static_cast<unsigned>(kind);
}

constexpr unsigned kAll = ~0u;
constexpr unsigned kSpares = bit(PolicyKind::kHotSpares), kOobleck = bit(PolicyKind::kOobleck),
                   kBamboo = bit(PolicyKind::kBamboo), kVaruna = bit(PolicyKind::kVaruna),
                   kRecycle = bit(PolicyKind::kRecycle), kElastic = bit(PolicyKind::kElastic),
                   kRestarts = bit(PolicyKind::kCheckpointRestart) | bit(PolicyKind::kNone);

struct PolicyKey {
  const char* name;
  unsigned read_by;
};
constexpr std::array kPolicyKeys{PolicyKey{"name", kAll},
                                 PolicyKey{"rules", kOobleck | kVaruna | kBamboo},
                                 PolicyKey{"throughput", kAll},
                                 PolicyKey{"samples_per_step", kAll},
                                 PolicyKey{"restart", kAll},
                                 PolicyKey{"lost", kRestarts},
                                 PolicyKey{"spares", kSpares | kElastic},
                                 PolicyKey{"swap", kSpares | kOobleck | kRecycle},
                                 PolicyKey{"state", kSpares},
                                 PolicyKey{"backup", kSpares},
                                 PolicyKey{"slow_nodes", kSpares},
                                 PolicyKey{"max_failures", kOobleck},
                                 PolicyKey{"cost", kOobleck},
                                 PolicyKey{"recompose_on_join", kOobleck},
                                 PolicyKey{"reconfigure", kOobleck | kRecycle | kVaruna},
                                 PolicyKey{"global_rendezvous", kBamboo},
                                 PolicyKey{"local_rendezvous", kBamboo},
                                 PolicyKey{"takeover_slowdown", kBamboo},
                                 PolicyKey{"rebalance_threshold", kBamboo},
                                 PolicyKey{"pipelines", kBamboo},
                                 PolicyKey{"stages", kOobleck | kVaruna | kBamboo},
                                 PolicyKey{"checkpoint_every", kVaruna},
                                 PolicyKey{"transient_wait", kVaruna},
                                 PolicyKey{"announced_wait", kVaruna},
                                 PolicyKey{"notice", kVaruna},
                                 PolicyKey{"min_replicas", kElastic},
                                 PolicyKey{"stall", kElastic},
                                 PolicyKey{"degraded", kElastic},
                                 PolicyKey{"rejoin", kElastic},
                                 PolicyKey{"quorum", kElastic},
                                 PolicyKey{"keep_batch", kElastic},
                                 PolicyKey{"fill_bubbles", kRecycle}};

std::string readers_of(unsigned read_by) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::size(kPolicyNames); ++i)
    if ((read_by >> i & 1u) != 0) names.emplace_back(kPolicyNames[i]);
  return join(names, ", ");
}

class PolicyLoader {
 public:
  PolicyLoader(YamlMap& map, FailureDefaults& defaults, bool nodes_are_said)
      : map_(map), in_(map, defaults), nodes_are_said_(nodes_are_said) {}

  PolicySpec load(PolicyKind kind);

 private:
  void refuse_keys_of_others(PolicyKind kind);
  void load_common();
  void load_restart();
  void load_throughput();
  void load_lost();
  void load_spares();
  void load_slow_nodes();
  void load_oobleck();
  void load_bamboo();
  void load_varuna();
  void load_elastic();
  int count(const char* key, std::int64_t min, int fallback, std::int64_t max = kMaxPolicyNodes) {
    return static_cast<int>(map_.integer(key, {.min = min, .max = max, .fallback = fallback}));
  }

  YamlMap& map_;
  DefaultedMap in_;
  bool nodes_are_said_;
  PolicySpec spec_;
};

void PolicyLoader::refuse_keys_of_others(PolicyKind kind) {
  for (const PolicyKey& key : kPolicyKeys) {
    if ((key.read_by & bit(kind)) != 0 || !map_.has(key.name)) continue;
    map_.error(key.name, "contradiction",
               fmt::format("is for {}, and the policy is {}", readers_of(key.read_by),
                           kPolicyNames[static_cast<std::size_t>(kind)]),
               "leave it out");
  }
}

// A time, or a table of times by GPUs.
void PolicyLoader::load_restart() {
  const YamlNode* node = map_.get("restart");
  if (node == nullptr || node->kind != YamlNode::Kind::kMap) {
    spec_.restart = {{1, in_.duration("restart")}};
    return;
  }
  YamlMap table = map_.map("restart");
  for (const YamlEntry& entry : node->entries) {
    const auto gpus = parse_integer(entry.key);
    if (!gpus || *gpus < 1 || *gpus > kMaxPolicyGpus)
      map_.error("restart", "bad-number", fmt::format("{} is not a number of GPUs", in_quotes(entry.key)),
                 "write {16000: 200 s, 98000: 900 s}");
    spec_.restart.emplace_back(static_cast<int>(gpus.value_or(1)), table.duration(entry.key));
  }
  std::ranges::sort(spec_.restart);
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::ranges::adjacent_find(spec_.restart, same) != spec_.restart.end())
    map_.error("restart", "duplicate-key", "one number of GPUs is named twice", "leave one of them out");
  if (spec_.restart.empty())
    map_.error("restart", "empty-list", "the table has no entries", "write {16000: 200 s, 98000: 900 s}");
}

void PolicyLoader::load_throughput() {
  const YamlNode* node = map_.get("throughput");
  if (node == nullptr) return;
  YamlMap table = map_.map("throughput");
  for (const YamlEntry& entry : node->entries) {
    const auto nodes = parse_integer(entry.key);
    if (!nodes || *nodes < 1 || *nodes > kMaxPolicyNodes)
      map_.error("throughput", "bad-number", fmt::format("{} is not a number of nodes", in_quotes(entry.key)),
                 "write {15: 10.2, 30: 21}: samples per second by nodes");
    const double rate = table.number(entry.key, {.min = 0, .max = kMostSamplesPerSecond});
    if (rate > 0 && rate < kLeastSamplesPerSecond)
      table.error(entry.key, "out-of-range", fmt::format("{:g} samples per second are too few", rate),
                  fmt::format("0, or at least {:g}", kLeastSamplesPerSecond));
    spec_.throughput.emplace_back(static_cast<int>(nodes.value_or(1)), rate);
  }
  std::ranges::sort(spec_.throughput);
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::ranges::adjacent_find(spec_.throughput, same) != spec_.throughput.end())
    map_.error("throughput", "duplicate-key", "one number of nodes is named twice", "leave one of them out");
  if (node->kind == YamlNode::Kind::kMap && spec_.throughput.empty())
    map_.error("throughput", "empty-list", "the table has no entries",
               "write {15: 10.2, 30: 21}: samples per second by nodes");
}

void PolicyLoader::load_common() {
  load_restart();
  load_throughput();
  if (map_.has("samples_per_step")) {
    spec_.samples_per_step = map_.integer("samples_per_step", {.min = 1, .max = kMaxSteps});
    if (spec_.throughput.empty())
      map_.error("samples_per_step", "contradiction", "goes with throughput, and there is none",
                 "leave it out: a simulated step has training.global_batch_size samples");
  }
  const unsigned kind = bit(spec_.kind);
  if ((kind & (kOobleck | kVaruna | kBamboo)) != 0) {
    // `artifact` is another name for the rules of the published evaluations.
    const std::size_t rules = map_.choice("rules", {{"corrected", "published", "artifact"}}, 0);
    spec_.rules = rules == 0 ? Rules::kCorrected : Rules::kPublished;
  }
  if ((kind & (kOobleck | kRecycle | kVaruna)) != 0 && map_.has("reconfigure"))
    spec_.reconfigure = map_.duration("reconfigure");
  if ((kind & (kSpares | kOobleck | kRecycle)) != 0) spec_.swap = in_.duration("swap");
}

// ignore | ladder | {rungs: [rebalance, exchange, restart], notice: 1.1, lasts: 1 h}
void PolicyLoader::load_slow_nodes() {
  const YamlNode* node = map_.get("slow_nodes");
  if (node == nullptr) return;
  SlowRungs& slow = spec_.slow;
  slow.rebalance = slow.exchange = slow.restart = true;
  if (node->kind == YamlNode::Kind::kScalar) {
    if (map_.choice("slow_nodes", {{"ignore", "ladder"}}) == 0) slow = {};
    YamlMap nothing(nullptr, map_.path_of("slow_nodes"), map_.where_of("slow_nodes"), map_.diagnostics());
    if (slow.any()) slow.notice = DefaultedMap(nothing, in_.defaults()).number("notice", {}, "slow_notice");
    return;
  }
  YamlMap map = map_.map("slow_nodes");
  if (map.has("rungs")) {
    const std::vector<std::string> rungs = map.texts("rungs");
    for (const std::string& rung : rungs)
      if (std::ranges::find(kRungNames, rung) == std::end(kRungNames))
        map.error("rungs", "unknown-name", fmt::format("{} is no rung", in_quotes(rung)),
                  "write some of [rebalance, exchange, restart]");
    const auto has = [&](std::size_t i) {
      return std::ranges::find(rungs, std::string(kRungNames[i])) != rungs.end();
    };
    slow.rebalance = has(0), slow.exchange = has(1), slow.restart = has(2);
  }
  slow.notice =
      DefaultedMap(map, in_.defaults()).number("notice", {.min = 1, .max = kMaxFactor}, "slow_notice");
  if (map.has("lasts")) slow.lasts = map.duration("lasts");
  map.finish();
}

void PolicyLoader::load_lost() {
  const ErrorWatch watch(map_.diagnostics());
  const LostNode unsaid = nodes_are_said_ ? LostNode::kWaitedFor : LostNode::kReplaced;
  spec_.lost = map_.choose("lost", kLostNodeNames, unsaid);
  if (nodes_are_said_ && spec_.lost == LostNode::kReplaced && watch.clean())
    map_.error("lost", "contradiction",
               "a node is replaced by one that is not there: failures.process says which nodes there are",
               "use waited-for or done-without");
}

void PolicyLoader::load_spares() {
  if (map_.has("spares")) spec_.spares = count("spares", 0, 0, kMaxSpares);
  spec_.state = map_.choose("state", kStateSourceNames, StateSource::kCheckpoint);
  if (map_.has("backup")) {
    spec_.backup = map_.number("backup", {.min = 0, .max = kMaxFactor});
    if (spec_.state != StateSource::kPeer)
      map_.error("backup", "contradiction",
                 "copies to a peer are what state: peer loads, and state is checkpoint",
                 "add state: peer, or leave it out");
  }
  load_slow_nodes();
}

void PolicyLoader::load_oobleck() {
  spec_.max_failures = count("max_failures", 0, 1);
  spec_.simulated_cost = map_.choice("cost", {{"paper", "simulated"}}, 0) == 1;
  spec_.recompose_on_join = map_.boolean("recompose_on_join", true);
  spec_.stages = count("stages", 1, 0);
}

void PolicyLoader::load_bamboo() {
  spec_.global_rendezvous = in_.duration("global_rendezvous");
  spec_.local_rendezvous = in_.duration("local_rendezvous");
  spec_.takeover_slowdown = in_.number("takeover_slowdown", {.min = 1, .max = kMaxFactor});
  spec_.rebalance_threshold = in_.number("rebalance_threshold", {.min = 0, .max = 2});
  spec_.pipelines = count("pipelines", 1, 0);
  spec_.stages = count("stages", 1, 0);
}

void PolicyLoader::load_varuna() {
  spec_.checkpoint_every = in_.integer("checkpoint_every", {.min = 1, .max = kMaxSteps});
  spec_.transient_wait = in_.duration("transient_wait");
  spec_.announced_wait = in_.duration("announced_wait");
  spec_.notice = in_.duration("notice");
  spec_.stages = count("stages", 1, 0);
}

void PolicyLoader::load_elastic() {
  spec_.min_replicas = count("min_replicas", 1, 1);
  spec_.stall = in_.duration("stall");
  spec_.degraded = in_.duration("degraded");
  spec_.rejoin = in_.duration("rejoin");
  spec_.quorum = in_.duration("quorum");
  if (map_.has("spares")) spec_.spares = count("spares", 0, 0, kMaxSpares);
  spec_.keep_batch = map_.boolean("keep_batch", false);
}

PolicySpec PolicyLoader::load(PolicyKind kind) {
  spec_.kind = kind;
  refuse_keys_of_others(kind);
  load_common();
  switch (kind) {
    case PolicyKind::kCheckpointRestart:
    case PolicyKind::kNone:
      load_lost();
      break;
    case PolicyKind::kHotSpares:
      load_spares();
      break;
    case PolicyKind::kOobleck:
      load_oobleck();
      break;
    case PolicyKind::kBamboo:
      load_bamboo();
      break;
    case PolicyKind::kVaruna:
      load_varuna();
      break;
    case PolicyKind::kElastic:
      load_elastic();
      break;
    case PolicyKind::kRecycle:
      spec_.fill_bubbles = map_.boolean("fill_bubbles", true);
      break;
  }
  map_.finish();
  return spec_;
}

// optimal | young | daly | 30 min | 10 steps
void load_interval(YamlMap& map, CheckpointSpec& spec) {
  if (!map.has("interval")) return;
  const ErrorWatch watch(map.diagnostics());
  const std::string text = map.text("interval");
  if (!watch.clean()) return;
  const auto rule = std::ranges::find(kIntervalRuleNames, text);
  if (rule != std::end(kIntervalRuleNames)) {
    spec.rule = static_cast<IntervalRule>(rule - std::begin(kIntervalRuleNames));
    return;
  }
  const auto blank = text.find(' ');
  const std::string_view unit = blank == std::string::npos ? "" : std::string_view(text).substr(blank + 1);
  const auto steps = parse_integer(text.substr(0, blank));
  if (steps && *steps >= 1 && *steps <= kMaxSteps && (unit == "steps" || unit == "step")) {
    spec.rule = IntervalRule::kSteps;
    spec.every_steps = *steps;
    return;
  }
  const auto time = parse_duration(text);
  if (time && *time > Duration(0)) {
    spec.rule = IntervalRule::kTime;
    spec.interval = *time;
    return;
  }
  map.error("interval", "bad-interval", fmt::format("{} is no interval between checkpoints", in_quotes(text)),
            "write optimal, young, daly, a time as 30 min, or 10 steps");
}

std::optional<Duration> optional_time(YamlMap& map, const char* key) {
  return map.has(key) ? std::optional(map.duration(key)) : std::nullopt;
}

// The storage rate of all nodes together. By default that of a storage system as large as the measured one,
// or larger with the cluster; no limit where the scenario sets the rate of a node.
Bandwidth storage_rate(DefaultedMap& in, const char* of_node, const char* key, const ClusterSpec* cluster) {
  YamlMap& map = in.map();
  if (map.has(key)) return in.bandwidth(key);
  if (map.has(of_node)) return Bandwidth(0);
  const Bandwidth rate = in.bandwidth(key);
  const double nodes = in.defaults().number(map.path_of(key), "storage_nodes");
  return Bandwidth(rate.count() * std::max(1.0, static_cast<double>(nodes_of(cluster)) / nodes));
}

}  // namespace

PolicySpec load_policy(YamlMap& failures, FailureDefaults& defaults, bool nodes_are_said) {
  const YamlNode* node = failures.get("policy");
  if (node == nullptr || node->kind == YamlNode::Kind::kScalar) {
    const PolicyKind kind = failures.choose("policy", kPolicyNames, PolicyKind::kCheckpointRestart);
    YamlMap map(nullptr, failures.path_of("policy"), failures.where_of("policy"), failures.diagnostics());
    return PolicyLoader(map, defaults, nodes_are_said).load(kind);
  }
  YamlMap map = failures.map("policy");
  const ErrorWatch watch(map.diagnostics());
  const auto kind = map.choose<PolicyKind>("name", kPolicyNames);
  if (!watch.clean()) {  // whose keys these are is not known
    for (const PolicyKey& key : kPolicyKeys) (void)map.has(key.name);
    map.finish();
    return {};
  }
  return PolicyLoader(map, defaults, nodes_are_said).load(kind);
}

CheckpointSpec load_checkpoint(YamlMap& failures, FailureDefaults& defaults, const ClusterSpec* cluster) {
  YamlMap map = failures.map("checkpoint");
  DefaultedMap in(map, defaults);
  CheckpointSpec spec;
  spec.mode = map.choose("mode", kCheckpointModeNames, CheckpointMode::kSync);
  load_interval(map, spec);
  const bool sync = spec.mode == CheckpointMode::kSync;
  const auto not_for_sync = [&](const char* key) {
    if (sync && map.has(key))
      map.error(key, "contradiction", "is for checkpoints in the background, and the mode is sync",
                "leave it out");
    return !sync;
  };
  spec.block = optional_time(map, "block");
  if (not_for_sync("persist")) spec.persist = optional_time(map, "persist");
  spec.load = optional_time(map, "load");
  if (map.has("bytes")) spec.bytes = map.bytes("bytes");
  spec.node_write = in.bandwidth("node_write");
  spec.node_read = in.bandwidth("node_read");
  spec.storage_write = storage_rate(in, "node_write", "storage_write", cluster);
  spec.storage_read = storage_rate(in, "node_read", "storage_read", cluster);
  const bool in_memory = spec.mode == CheckpointMode::kInMemory;
  if (not_for_sync("snapshot"))
    spec.snapshot = in_memory ? map.bandwidth("snapshot", Bandwidth(0)) : in.bandwidth("snapshot");
  if (not_for_sync("slowdown")) spec.slowdown = in.number("slowdown", {.min = 1, .max = kMaxFactor});
  if (in_memory)
    spec.copies = static_cast<int>(in.integer("copies", {.min = 2, .max = kMaxPolicyNodes}));
  else if (map.has("copies"))
    map.error("copies", "contradiction", "is for checkpoints in memory",
              "use mode: in-memory, or leave it out");
  map.finish();
  return spec;
}

}  // namespace stagecraft
