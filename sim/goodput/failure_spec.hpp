// `failures:` of a scenario: the failures, the repairs, and the policy of the job.
//
// Plain values, filled in by the loader (sim/scenario/load_failures). Defaults that a user could care about
// are in scenarios/failures/defaults.yaml with their sources. Rates are per node and day of 86,400 s.
//
//   source   docs/resilience.md, sections 2 (processes), 4 to 6 (checkpoints and policies) and 9 (defaults).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/units.hpp"
#include "sim/goodput/incident.hpp"
#include "sim/goodput/trace.hpp"

namespace stagecraft {

// Severity of a failure (Unicron's ladder, arXiv 2401.00134): a process failure needs a restart of the job's
// processes; a node failure takes the node away until it is repaired.
enum class FailureSeverity : std::uint8_t { kProcess, kNode };
inline constexpr std::string_view kSeverityNames[] = {"process", "node"};

enum class RepairKind : std::uint8_t {
  kEmpirical,  // one of `times`, each as likely
  kConstant,   // `time`
  kNone,       // no repair: a lost node stays lost
};
inline constexpr std::string_view kRepairNames[] = {"empirical", "constant", "none"};

struct RepairSpec {
  RepairKind kind = RepairKind::kNone;
  Duration time{};                   // repair time of kConstant
  std::vector<Duration> times = {};  // repair times of kEmpirical, sorted
  std::string file = {};             // source of `times`: a fault trace, as written

  friend bool operator==(const RepairSpec&, const RepairSpec&) = default;
};

struct Cause {
  std::string name = {};
  double share = 1;  // share of the failures of its process; the shares of a process add up to 1
  FailureSeverity severity = FailureSeverity::kNode;
  Duration detect{};                      // from the failure until the job knows
  std::optional<RepairSpec> repair = {};  // absent: the scenario's

  friend bool operator==(const Cause&, const Cause&) = default;
};

// The laws of failures. Each has kName, its `kind:` in a scenario, and kBreaksNodes: do its failures need
// repairs? Under the other laws nodes return by the law itself.

// Each up node fails at rate r·(N/reference)^exponent in a job of N nodes, spares not counted; after its i-th
// incident lemon_factor^i times as often, i <= 19: nothing is known beyond the 20th (SuperBench, USENIX ATC
// 2024), and a factor that grew for ever would fail infinitely often.
struct ExponentialFailures {
  static constexpr std::string_view kName = "exponential";
  static constexpr bool kBreaksNodes = true;
  double rate_per_node_day = 0;
  double exponent = 0;
  int reference_nodes = 1;
  double lemon_factor = 1;

  friend bool operator==(const ExponentialFailures&, const ExponentialFailures&) = default;
};

// One exponential law per class of component. Entry i belongs to cause i, whose share is ignored.
struct ComponentFailures {
  static constexpr std::string_view kName = "components";
  static constexpr bool kBreaksNodes = true;
  std::vector<double> rates_per_node_day = {};
  double lemon_factor = 1;

  friend bool operator==(const ComponentFailures&, const ComponentFailures&) = default;
};

// Time to failure of a node since its last repair: Weibull with mean 1/rate.
struct WeibullNodeFailures {
  static constexpr std::string_view kName = "weibull";
  static constexpr bool kBreaksNodes = true;
  double rate_per_node_day = 0;
  double shape = 1;
  double lemon_factor = 1;

  friend bool operator==(const WeibullNodeFailures&, const WeibullNodeFailures&) = default;
};

// Gaps between the failures of the whole cluster: Weibull of mean 1/(N·rate); each hits one of the up nodes,
// all equally likely.
struct WeibullClusterFailures {
  static constexpr std::string_view kName = "weibull-cluster";
  static constexpr bool kBreaksNodes = true;
  double rate_per_node_day = 0;
  double shape = 1;

  friend bool operator==(const WeibullClusterFailures&, const WeibullClusterFailures&) = default;
};

// Several nodes of one fault domain at once. Domains are the nodes 0..n-1, n..2n-1, …; each has bursts of its
// own (Poisson).
struct BurstFailures {
  static constexpr std::string_view kName = "bursts";
  static constexpr bool kBreaksNodes = true;
  // Nodes lost, not bursts: a domain of n nodes has rate·n/(mean size) bursts a day. Or bursts_per_day of all
  // nodes of the job; domains of spares have as many a node.
  double rate_per_node_day = 0;
  std::optional<double> bursts_per_day = {};
  int domain_nodes = 1;                            // n
  std::vector<std::pair<int, double>> sizes = {};  // (nodes, weight), capped at the domain; empty: geometric
  double mean_size = 1;                            // mean of the geometric law, before the cap

  friend bool operator==(const BurstFailures&, const BurstFailures&) = default;
};

// Replay of a recorded trace. Nodes of the trace take the cluster's nodes in order of appearance.
struct TraceReplay {
  static constexpr std::string_view kName = "trace";
  static constexpr bool kBreaksNodes = false;
  std::string file = {};  // as written
  Trace trace = {};
  double scale = 1;     // factor on all times
  Duration offset{};    // position of time 0 in the (unscaled) trace
  bool repeat = false;  // again from the start when it ends
  // Counts: nodes per unit that was counted, rounded down (1/8 for GPUs of nodes of 8).
  double count_scale = 1;
  // Faults: how many servers were watched; the cluster's nodes are drawn from them.
  std::optional<int> servers = {};
  std::vector<std::string> leave_out = {};  // faults: classes that are no failures
  Duration creation{};                      // from an addition until the node is usable

  friend bool operator==(const TraceReplay&, const TraceReplay&) = default;
};

// Nodes of a count: at most what an int holds, which no cluster has.
[[nodiscard]] inline int scaled_count(const TraceReplay& replay, int available) {
  constexpr double kMost = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(std::floor(available * replay.count_scale), kMost));
}

// The longest time of a failure, a repair, a policy or a checkpoint. Sums of a few of them and a horizon stay
// within the 292 years of a Duration.
inline constexpr Duration kLongestFailureTime = std::chrono::hours(24 * 7300);

// Bamboo's spot market: hourly probabilities of addition and removal (docs/resilience.md, section 2).
struct HourlySpot {
  static constexpr std::string_view kName = "spot";
  static constexpr bool kBreaksNodes = false;
  std::array<double, 24> add{};
  std::array<double, 24> remove{};
  int start_hour = 0;
  bool random_additions = false;  // `add` is drawn, uniform on (0,1), once a repeat
  Duration creation{};            // from an addition until the node is usable

  friend bool operator==(const HourlySpot&, const HourlySpot&) = default;
};

// Nodes that go on, slowly. Onsets of an up node that is not slow already: exponential.
struct FailSlow {
  static constexpr std::string_view kName = "fail-slow";
  static constexpr bool kBreaksNodes = false;
  // Either onsets, or the share of nodes that are slow at any time: rate = share/((1 − share)·mean duration).
  std::optional<double> rate_per_node_day = {};
  double share = 0;
  double low_factor = 1, high_factor = 1;  // > 1; uniform between
  Duration shortest{}, longest{};          // log-uniform between
  SlowPart part = SlowPart::kCompute;

  friend bool operator==(const FailSlow&, const FailSlow&) = default;
};

// Results go wrong at a node and are found out later: exponential onsets, a delay of exponential law.
struct SilentCorruption {
  static constexpr std::string_view kName = "silent-corruption";
  static constexpr bool kBreaksNodes = false;
  double rate_per_node_day = 0;
  Duration discovery{};  // mean; 0: at once

  friend bool operator==(const SilentCorruption&, const SilentCorruption&) = default;
};

// Every `period`, with a uniform jitter, one node that is up leaves for `duration`, announced `notice`
// before.
struct Maintenance {
  static constexpr std::string_view kName = "maintenance";
  static constexpr bool kBreaksNodes = false;
  Duration period{};
  Duration jitter{};
  Duration notice{};
  Duration duration{};

  friend bool operator==(const Maintenance&, const Maintenance&) = default;
};

using FailureLaw =
    std::variant<ExponentialFailures, ComponentFailures, WeibullNodeFailures, WeibullClusterFailures,
                 BurstFailures, TraceReplay, HourlySpot, FailSlow, SilentCorruption, Maintenance>;
// Their names, in the order of the alternatives.
inline constexpr auto kFailureLawNames = []<class... Laws>(std::type_identity<std::variant<Laws...>>) {
  return std::array{Laws::kName...};
}(std::type_identity<FailureLaw>());

struct FailureProcess {
  FailureLaw law;
  std::vector<Cause> causes = {};  // at least one; causes of a fault trace have the names of its classes

  friend bool operator==(const FailureProcess&, const FailureProcess&) = default;
};

enum class CheckpointMode : std::uint8_t { kSync, kAsync, kInMemory };
inline constexpr std::string_view kCheckpointModeNames[] = {"sync", "async", "in-memory"};

enum class IntervalRule : std::uint8_t {
  kOptimal,  // the exact optimum of docs/resilience.md, section 8, in whole steps
  kYoung,
  kDaly,
  kTime,   // `interval`
  kSteps,  // `every_steps`
};
// The names of the rules that need no value: kOptimal, kYoung and kDaly.
inline constexpr std::string_view kIntervalRuleNames[] = {"optimal", "young", "daly"};

// Absent values are derived: bytes from the memory ledger, bandwidths of storage from the loader.
struct CheckpointSpec {
  CheckpointMode mode = CheckpointMode::kSync;
  IntervalRule rule = IntervalRule::kOptimal;
  Duration interval{};
  std::int64_t every_steps = 0;
  std::optional<Duration> block = {};    // training stands still: C of sync, s of async
  std::optional<Duration> persist = {};  // async: in the background until it is usable, P
  std::optional<Duration> load = {};     // into all nodes, after a failure
  std::optional<Bytes> bytes = {};       // size of one checkpoint of the whole job
  Bandwidth node_write{};                // bandwidth of one node to persistent storage
  Bandwidth node_read{};
  Bandwidth storage_write{};  // bandwidth of persistent storage for all nodes together; 0: no limit
  Bandwidth storage_read{};
  Bandwidth snapshot{};  // async, in-memory: from a GPU to its host; 0: its PCIe
  double slowdown = 1;   // slowdown of training while a persist runs, φ >= 1
  int copies = 2;        // in-memory: hosts that hold a shard, m

  friend bool operator==(const CheckpointSpec&, const CheckpointSpec&) = default;
};

enum class PolicyKind : std::uint8_t {
  kCheckpointRestart,
  kHotSpares,
  kOobleck,
  kBamboo,
  kVaruna,
  kRecycle,
  kElastic,
  kNone,
};
inline constexpr std::string_view kPolicyNames[] = {
    "checkpoint-restart", "hot-spares", "oobleck", "bamboo", "varuna", "recycle", "elastic", "none"};

// A published evaluation's rules, defects included, or the corrected ones (docs/resilience.md, section 7).
enum class Rules : std::uint8_t { kCorrected, kPublished };
inline constexpr std::string_view kRulesNames[] = {"corrected", "published"};

enum class StateSource : std::uint8_t { kCheckpoint, kPeer };
inline constexpr std::string_view kStateSourceNames[] = {"checkpoint", "peer"};

// Reaction of checkpoint-restart to a lost node.
enum class LostNode : std::uint8_t {
  kReplaced,  // the scheduler replaces it during the restart, whether or not the history has the node up again
  kWaitedFor,
  kDoneWithout,
};
inline constexpr std::string_view kLostNodeNames[] = {"replaced", "waited-for", "done-without"};

// Reaction to slow nodes, from the cheapest rung up (policies/slow_ladder.hpp). Without a rung they are
// ignored, and the slowest node sets the pace.
struct SlowRungs {
  bool rebalance = false;  // micro-batches move from slow replicas to fast ones
  bool exchange = false;   // a spare takes the place of a slow node
  bool restart = false;    // the job goes on without the slow nodes, in a smaller shape
  double notice = 1.1;     // slowdown factor from which on a node is noticed
  // Expected duration of slowness; absent: the mean of the fail-slow processes.
  std::optional<Duration> lasts = {};

  [[nodiscard]] bool any() const { return rebalance || exchange || restart; }
  friend bool operator==(const SlowRungs&, const SlowRungs&) = default;
};
inline constexpr std::string_view kRungNames[] = {"rebalance", "exchange", "restart"};

// A policy reads its own keys and leaves the others alone; the loader refuses a key that the chosen policy
// does not read.
struct PolicySpec {
  PolicyKind kind = PolicyKind::kCheckpointRestart;
  Rules rules = Rules::kCorrected;

  // The time from the end of detection until state can be loaded, by GPUs: linear in log GPUs between rows,
  // flat beyond; one row: always.
  std::vector<std::pair<int, Duration>> restart = {};

  // Samples/s by usable nodes, in place of simulated steps, and how many samples a step then has; 0:
  // training.global_batch_size.
  std::vector<std::pair<int, double>> throughput = {};
  std::int64_t samples_per_step = 0;

  // checkpoint-restart, none
  LostNode lost = LostNode::kReplaced;

  // hot-spares, elastic. Absent: elastic has none, hot-spares the 99th percentile (docs/resilience.md,
  // section 6).
  std::optional<int> spares = {};
  // hot-spares: a spare takes a place; oobleck, recycle: groups anew, without `reconfigure`
  Duration swap{};

  // hot-spares
  StateSource state = StateSource::kCheckpoint;
  // Fraction of a step that a copy of every node's shard to a peer adds to each step (ByteRobust); absent: no
  // such copies.
  std::optional<double> backup = {};
  SlowRungs slow = {};

  // oobleck
  int max_failures = 1;           // f
  bool simulated_cost = false;    // templates by simulated iteration time, not by the paper's formula
  bool recompose_on_join = true;  // otherwise a new node waits for the next failure
  // oobleck, recycle, varuna: the whole reconfiguration; absent: from its parts
  std::optional<Duration> reconfigure = {};

  // bamboo
  Duration global_rendezvous{};
  Duration local_rendezvous{};
  double takeover_slowdown = 1;    // the step while a node does the work of two
  double rebalance_threshold = 0;  // 2·overloaded/active beyond which it rebalances
  int stages = 0;     // nodes of a pipeline where there is a table of throughputs; 0: from the plan
  int pipelines = 0;  // without effect: there are as many as nodes fill

  // varuna
  std::int64_t checkpoint_every = 0;  // steps
  Duration transient_wait{};          // whether an error passes, before the job is killed
  Duration announced_wait{};          // after the checkpoint of an announced loss
  Duration notice{};  // every loss is announced that long before; 0: those that the history announces

  // elastic
  int min_replicas = 1;
  Duration stall{};         // all replicas wait, s
  Duration degraded{};      // the lost replica reloads, d
  Duration rejoin{};        // all wait again, j
  Duration quorum{};        // exposed time per step to agree on the participants
  bool keep_batch = false;  // the other replicas take its micro-batches; otherwise the batch shrinks

  // recycle
  bool fill_bubbles = true;  // extra work goes into bubbles first

  // Can nodes stand by, ready for the places of lost ones?
  [[nodiscard]] bool has_spares() const {
    return kind == PolicyKind::kHotSpares || kind == PolicyKind::kElastic;
  }
  // Does the scheduler bring another node at once for each that the job loses?
  [[nodiscard]] bool replaces_lost_nodes() const {
    const bool restarts = kind == PolicyKind::kCheckpointRestart || kind == PolicyKind::kNone;
    return restarts && lost == LostNode::kReplaced;
  }
  friend bool operator==(const PolicySpec&, const PolicySpec&) = default;
};

struct FailureSpec {
  std::vector<FailureProcess> processes = {};
  PolicySpec policy = {};
  CheckpointSpec checkpoint = {};
  RepairSpec repair = {};
  std::optional<Duration> detect = {};  // detection time of every cause, in place of its own
  Duration horizon{};
  int repeats = 1;

  friend bool operator==(const FailureSpec&, const FailureSpec&) = default;
};

}  // namespace stagecraft
