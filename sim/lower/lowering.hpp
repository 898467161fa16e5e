// How lower() builds the task graph; seen by its own files only.
//
//   lower.cpp           passes, messages, buckets beside them
//   lower_sharded.cpp   passes that are cut into units, with the traffic of each (ZeRO 2 and 3)
//   lower_faults.cpp    ranks that change their speed
//   lower_tail.cpp      reductions at the end, other copies, tied embeddings, norm, optimizer
//   lower_tasks.cpp     tasks and their labels: of passes, of traffic, of points in time
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/lower/flow_plan.hpp"
#include "sim/lower/lower.hpp"
#include "sim/lower/task_names.hpp"
#include "sim/lower/time_sources.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// Where the times of labels come from, noted while they are made.
struct PriceTrace {
  std::unordered_map<const PassPrice*, std::uint32_t> numbers;
  std::vector<TimeSource> sources;  // [label]
};

class Lowering {
 public:
  Lowering(const Schedule& schedule, const IterationPrices& prices, const LowerOptions& options);

  void trace(PriceTrace* trace) { trace_ = trace; }

  Program lower() &&;

 private:
  using Handle = ProgramBuilder::Handle;

  // The other pass of a fused pair, and how long both last in it.
  struct Pairing {
    Duration lasts{}, partner_lasts{};
    Pass partner{};
    std::size_t partner_place = 0;
    friend auto operator<=>(const Pairing&, const Pairing&) = default;
  };

  // A pass in the order of its rank.
  struct RankPass {
    Action action;          // micro-batches are numbered through all iterations
    std::size_t place = 0;  // index of its stage: StagePlaces::index_of()
    std::size_t chunk = 0;
    // First forward, first backward, last backward of its stage in this iteration. "Backward" here: a pass
    // that produces weight gradients.
    bool first_forward = false, first_backward = false, last_backward = false;
    std::optional<Pairing> pair = {};
  };
  // The passes of one rank between two iteration ends.
  using Stretch = std::vector<RankPass>;

  // A pass may be cut into segments, one per bucket or unit.
  struct PassTasks {
    Handle first, last;
  };

  // Shared by all tasks of one kind: label, duration, flow, device load.
  struct Kind {
    LabelId label;
    Duration time{};
    std::optional<FlowKind> flow{};
    double load = 0;  // share of the rank's compute device that the task takes
  };
  // Tasks run back to back: one per exposed collective on shared links, otherwise exactly one task.
  using Steps = std::vector<Kind>;

  struct PendingReduction {
    Steps steps, behind;  // `steps` run on the data stream, then `behind` on the stream of replicas
    Handle ready;
  };

  // The tasks of one copy of one pipeline rank.
  struct RankTasks {
    ResourceId compute, send, data;
    // Stream of the all-reduces over replicas of a shard, beside the data stream.
    std::optional<ResourceId> replicas;
    std::optional<Handle> last_compute, last_data, last_replicas;
    // State of passes that are cut into units: the last segment and the one before it; reductions that are
    // ready but not yet on the data stream; handles that the next compute task waits for; number of
    // collectives so far.
    std::array<std::optional<Handle>, 2> segments{};
    std::vector<PendingReduction> reductions{};
    std::vector<Handle> blocking{};
    std::size_t collectives = 0;
    std::size_t buckets = 0;                    // number of pending buckets that are ready so far
    std::vector<std::optional<Handle>> done{};  // [chunk]: end of its last backward
    // Ends of the unsplit backwards of this iteration, in order. `last_backward`, by chunk: index of its last
    // one.
    std::vector<Handle> backwards{};
    std::vector<std::optional<std::size_t>> last_backward{};
    std::optional<Handle> step{};     // optimizer step of the previous iteration
    bool owes_step = false;           // that step has not run yet (PipeDream-2BW)
    std::optional<Handle> reduced{};  // the gradient reduction that it waits for
    // Where messages are queued: the last one to each rank; kNic: through the NIC, where links are not shared.
    std::map<int, Handle> sent{};

    // The last tasks of compute and data so far.
    void add_ends(std::vector<Handle>& ends) const {
      ends.push_back(*last_compute);
      if (last_data) ends.push_back(*last_data);
    }
  };

  // Other ranks wait for these: a forward's output or a backward's input gradient has arrived.
  struct Arrivals {
    std::vector<std::optional<Handle>> activation,
        gradient;  // [stage * m + micro-batch], by the producing stage
    std::vector<std::optional<PassTasks>> forward, backward;  // the passes themselves
  };

  // A segment of a cut pass and the collectives of its unit. Each of them may be empty.
  struct SegmentKind {
    Steps segment;
    Steps gather, reduce, replicate;
  };

  // Where each bucket's data becomes ready: [rank][bucket in program order] -> one handle per replica.
  struct PendingBucket {
    const PassPrice* price;
    std::size_t chunk;
    double load;  // share of the compute device that it takes
    std::vector<Handle> ready;
  };

  // A collective of all copies of a rank. It starts when the last copy is ready.
  struct Collective {
    std::vector<Handle> ready, tasks;
  };

  // lower.cpp
  void add_resources();
  Arrivals empty_arrivals() const;
  void share_links();  // of the cluster, or the own links of each rank
  void note_recomputed();
  Stretch stretch_of(const std::vector<Action>& actions) const;
  void add_rollback(RankTasks& tasks);
  void add_passes(int replica, int rank, int iteration, const Stretch& stretch, Arrivals& arrivals);
  PassTasks add_pass(int replica, int rank, const RankPass& pass);
  PassTasks add_segments(int replica, int rank, const RankPass& pass, std::span<const PassPrice> buckets);
  void attach_bucket(int replica, int rank, const RankPass& pass, const PassPrice& bucket,
                     const PassTasks& segment);
  void attach_memory(std::span<const RankPass> together, const PassTasks& tasks);
  void send(RankTasks& tasks, const RankPass& pass, const PassTasks& added, Arrivals& arrivals);
  Handle add_message(RankTasks& tasks, const RankPass& pass, Handle after);
  void connect(const Arrivals& arrivals);
  std::span<const PassPrice> buckets_beside(int rank, const RankPass& pass) const;
  bool recomputes_in(const RankPass& pass) const { return !recompute_pass_[pass.place]; }
  PassPrice price_of(const RankPass& pass) const {
    return pass_price(stage_price(pass), pass.action.pass, recomputes_in(pass));
  }

  // lower_tasks.cpp
  TimeSource source_of(const RankPass& pass) const;
  std::vector<TaskPart> parts_of(const RankPass& pass) const;
  const Steps& pass_steps(const RankPass& pass);
  const Steps& message_steps(std::size_t edge, bool forward);
  LabelId label(std::string name, std::int32_t stage, std::vector<TaskPart> parts, TimeSource source = {});
  Kind kind_of(const PassPrice& price, BesideTask does);
  Steps steps_of(const PassPrice& price, BesideTask does, double load = 0);
  // The task of a pass or of a part of it. Its time is the sum of `parts`.
  Kind pass_step(const RankPass& pass, std::vector<TaskPart> parts, TimeSource source);
  Kind wait_step(const RankPass& pass, const Exchanges& all, TaskPart part, double moving, TaskPart idle);
  // The exposed exchanges of one kind of group: the pass waits so long for them, so many seconds of which bytes
  // move. `beside`: share of its wait for the host that passes beside them.
  struct ExposedExchanges {
    Category category{};
    Exchanges all{};
    Duration waited{};
    double moves = 0, beside = 0;
  };
  // A pass by what it does with its traffic: what it waits for, what is hidden, and the compute that hides it.
  struct PassTraffics {
    std::vector<ExposedExchanges> exposed{};
    Traffic hidden{};
    Duration computes{};
  };
  PassTraffics traffics_of(const RankPass& pass) const;
  // The traffic that is spread over compute, and how long that lasts: in a fused pair that of both passes.
  std::optional<FlowKind> hidden_flow(const RankPass& pass, const PassTraffics& traffics);
  Steps steps_of_pass(const RankPass& pass, const std::vector<TaskPart>& parts, TimeSource source);
  Handle task(ResourceId resource, const Kind& kind, std::int32_t micro_batch = -1);
  Handle compute_task(RankTasks& tasks, const Kind& kind, std::int32_t micro_batch);
  PassTasks compute_tasks(RankTasks& tasks, const Steps& steps, std::int32_t micro_batch);
  PassTasks data_tasks(RankTasks& tasks, const Steps& steps);
  PassTasks tasks_on(ResourceId stream, const Steps& steps);
  // A task of zero duration that waits for all of `before`.
  Handle join(std::span<const Handle> before);

  // lower_sharded.cpp
  bool gathers_in(const RankPass& pass) const;
  int gathers_of(const RankPass& pass, const UnitPrice& unit) const;
  bool reduces_in(const RankPass& pass) const;
  PassTasks add_cut_pass(int replica, int rank, const RankPass& pass);
  // The units of a pass in the order in which it runs them.
  std::vector<UnitPrice> units_of(const RankPass& pass) const;
  SegmentKind segment_kind(const RankPass& pass, const UnitPrice& unit, Steps segment);
  const std::vector<SegmentKind>& segment_kinds(const RankPass& pass);
  // Segment `index` of a pass that is cut where the cumulative times `ends` of its units say.
  Steps segment_of(const RankPass& pass, std::span<const Duration> ends, std::size_t index);
  std::optional<Handle> add_gather(int rank, RankTasks& tasks, const SegmentKind& kind);
  // Share of the compute device that overlapped traffic takes while it lasts: of units; of buckets.
  double unit_load(const RankPass& pass) const {
    return std::min(1.0, stage_price(pass).beside.slowdown - 1);
  }
  double bucket_load(const RankPass& pass) const { return 1 - 1 / stage_price(pass).beside.slowdown; }
  void add_reduction(int rank, RankTasks& tasks, const SegmentKind& kind, Handle segment);
  Handle aligned(const RankTasks& tasks, int rank, std::size_t chunk, Handle ready) const;
  void flush_reductions(int rank, RankTasks& tasks, std::size_t keep);
  Handle collective(int rank, RankTasks& tasks, const Steps& steps, std::optional<Handle> after);
  void start_together(int rank, RankTasks& tasks, Handle after, Handle first);
  bool replicates_beside() const;
  void add_replication(int rank, RankTasks& tasks, const PendingReduction& reduction, Handle reduced);
  void join_replicas(RankTasks& tasks);
  void join_collectives();

  // lower_faults.cpp
  void add_speeds();

  // lower_tail.cpp
  void add_reductions();
  void end_iteration(int iteration);
  // Adds a collective of two pipeline ranks that starts at `ready`; appends the last task of each to `ends`.
  void add_pair(std::pair<int, int> ranks, Steps steps, Handle ready, std::vector<Handle>& ends);
  void add_copies(std::vector<Handle>& ends);
  void add_tied_embedding(std::vector<Handle>& ends);
  void step_behind_barrier(std::vector<Handle> ends);
  void step_post_validated();
  // Adds the optimizer step of one rank and the host time.
  void add_step(int replica, int rank, std::optional<Handle> ready);
  void add_gathers(int rank, RankTasks& tasks);
  void step_delayed(int replica, int rank);

  RankTasks& tasks_of(int replica, int rank) {
    return ranks_[static_cast<std::size_t>(replica * schedule_.shape.ranks + rank)];
  }
  const StagePrice& stage_price(const RankPass& pass) const { return prices_.stages[pass.place]; }
  // The micro-batches of all iterations.
  std::int32_t micro_batches() const { return schedule_.shape.micro_batches * options_.iterations; }
  std::size_t slot(std::int32_t stage, std::int32_t micro_batch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(micro_batches()) +
           static_cast<std::size_t>(micro_batch);
  }

  const Schedule& schedule_;
  const IterationPrices& prices_;
  const LowerOptions& options_;
  const StagePlaces places_;
  PriceTrace* trace_ = nullptr;
  ProgramBuilder builder_;
  SharedNetwork own_links_;        // in closed form
  std::optional<FlowPlan> flows_;  // engaged on shared links, and where traffic meets on a rank's own links
  std::vector<RankTasks> ranks_;   // [replica * p + rank]
  std::vector<int> copy_of_;       // by resource
  ResourceId joints_;
  LabelId joint_label_, iteration_label_;
  bool has_memory_ = false;           // does any stage have pass memory?
  bool slows_ = false;                // does traffic beside passes slow any of them?
  std::vector<bool> recompute_pass_;  // [place]: does its order have recompute passes?
  std::vector<std::vector<PendingBucket>> pending_reductions_;
  std::vector<std::vector<Collective>> collectives_;  // [rank][in program order]; unfolded only
  // Passes of one stage, and messages of one edge, are the same for every micro-batch: they are priced and
  // labelled once.
  std::array<std::vector<std::optional<Steps>>, kPassCount> pass_kinds_;  // [pass][place]
  std::array<std::vector<std::optional<Steps>>, 2> message_steps_;        // [forward][edge]
  // Steps of passes of fused pairs.
  using FusedKey = std::tuple<Pass, std::size_t, Pairing>;
  std::map<FusedKey, Steps> fused_kinds_;
  // Key: has reductions, is the first forward of its stage, pass, place, fused pair. Value: its segments in
  // order.
  using SegmentsKey = std::tuple<bool, bool, Pass, std::size_t, std::optional<Pairing>>;
  std::map<SegmentsKey, std::vector<SegmentKind>> segment_kinds_;
};

}  // namespace stagecraft
