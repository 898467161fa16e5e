// Bamboo and ReCycle: workers of one stage each that do the work of others.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/ceil_div.hpp"
#include "sim/goodput/policies/bamboo.hpp"
#include "sim/goodput/policies/degraded_steps.hpp"
#include "sim/goodput/policies/recycle.hpp"
#include "sim/goodput/policies/throughput_table.hpp"
#include "sim/goodput/restart_time.hpp"
#include "sim/resilience/setup_parts.hpp"

namespace stagecraft {
namespace {

// The job as pipelines of workers.
struct Workers {
  int stages = 1, pipelines = 1;
  int replicas = 1;             // replicas of the job inside one such pipeline
  std::vector<StageWork> work;  // work of one micro-batch, by stage
  std::int64_t micro_batches = 1;
};

std::optional<Workers> workers_of(const GoodputJob& job, Diagnostics& diagnostics) {
  const ParallelPlan& plan = job.plan();
  const JobCosts& costs = job.costs;
  const int per_node = costs.gpus_per_node / costs.stage_gpus;
  if (costs.gpus_per_node % costs.stage_gpus != 0 || plan.data % per_node != 0) {
    diagnostics.error(
        {.code = "policy-constraint",
         .path = "failures.policy",
         .message =
             fmt::format("a worker is a node with one stage, and stages of {} GPUs with {} replicas do "
                         "not fill nodes of {}",
                         costs.stage_gpus, plan.data, costs.gpus_per_node),
         .hint = "use tensor · context = the GPUs of a node, or a part of them that divides data"});
    return std::nullopt;
  }
  Workers workers{.stages = plan.pipeline,
                  .pipelines = plan.data / per_node,
                  .replicas = per_node,
                  .work = std::vector<StageWork>(static_cast<std::size_t>(plan.pipeline)),
                  .micro_batches = plan.micro_batches};
  for (std::size_t stage = 0; stage < costs.stage_forward.size(); ++stage) {
    StageWork& work = workers.work[static_cast<std::size_t>(plan.places().rank_of(static_cast<int>(stage)))];
    work.forward += costs.stage_forward[stage];
    work.backward += costs.stage_backward[stage];
  }
  return workers;
}

// A worker also holds its neighbour's states.
bool has_room_for_neighbour(const GoodputJob& job, Diagnostics& diagnostics) {
  const MemoryLedger& memory = job.simulation.report.memory;
  const Bytes peak = memory.heaviest().peak(), more = job.costs.state_of_gpu;
  if (memory.capacity == Bytes(0) || peak > memory.capacity || peak + more <= memory.capacity) return true;
  const auto gib = [](Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 30); };
  diagnostics.error(
      {.code = "out-of-memory",
       .path = "failures.policy",
       .message = fmt::format("with its neighbour's states a GPU holds {:.1f} + {:.1f} of {:.1f} GiB",
                              gib(peak), gib(more), gib(memory.capacity)),
       .hint = "use more stages, recompute, or a policy without redundant states"});
  return false;
}

// Extra time of a step by redundant forwards.
Duration redundant_part(const Workers& workers, std::int64_t micro_batches) {
  std::vector<Duration> plain;
  for (const StageWork& work : workers.work) plain.push_back(work.whole());
  return pipeline_time(redundant_stage_times(workers.work), micro_batches) -
         pipeline_time(plain, micro_batches);
}

std::optional<GoodputSetup> bamboo(const SetupRequest& request, const Workers& workers,
                                   Diagnostics& diagnostics) {
  if (!has_room_for_neighbour(request.job, diagnostics)) return std::nullopt;
  const PolicySpec& policy = request.spec.policy;
  const int all = workers.pipelines, stages = workers.stages;
  const std::int64_t work = workers.micro_batches * all;
  BambooSpec spec{.stages = stages,
                  .pipelines = all,
                  .step = {},
                  .global_rendezvous = policy.global_rendezvous,
                  .local_rendezvous = policy.local_rendezvous,
                  .slowdown = policy.takeover_slowdown,
                  .rebalance_threshold = policy.rebalance_threshold,
                  .copies = replicas_are_copies(request.job, workers.replicas),
                  .peer_transfer = peer_transfer(request.job.costs)};
  const ShapedStep ideal = full_step(request);
  spec.step = [&shapes = request.job.shapes, workers, work, stages, ideal](int pipelines) {
    std::optional<ShapedStep> step = shapes.replicas(pipelines * stages, BatchRule::kKept);
    if (!step || step->nodes != pipelines * stages) return std::optional<ShapedStep>();
    step->duration =
        std::max(step->duration, ideal.duration) + redundant_part(workers, ceil_div(work, pipelines));
    shapes.list_with(*step);
    return step;
  };
  return GoodputSetup{.policy = [spec] { return std::make_unique<Bamboo>(spec); },
                      .ideal = ideal,
                      .ideal_lacks = "redundant forwards",
                      .nodes = request.job.shapes.nodes()};
}

GoodputSetup recycle(const SetupRequest& request, const Workers& workers) {
  const ShapedStep ideal = full_step(request);
  RecycleSpec spec{
      .shape = {.stage_times = {},
                .micro_batches = workers.micro_batches,
                .pipelines = workers.pipelines,
                .fault_free = ideal.duration},
      .form = request.spec.policy.fill_bubbles ? RecycleForm::kLowerBound : RecycleForm::kUnoptimised,
      .samples = ideal.samples,
      .reconfigure = reconfigure_time(request),
      .restart = restart_time(request.spec.policy.restart, request.job.plan().gpus()),
      .peer_transfer = peer_transfer(request.job.costs)};
  if (!request.spec.policy.throughput.empty())
    spec.by_workers = shapes_of(request.spec.policy.throughput, ideal.samples);
  for (const StageWork& work : workers.work) spec.shape.stage_times.push_back(work.whole());
  return GoodputSetup{.policy = [spec] { return std::make_unique<Recycle>(spec); },
                      .ideal = ideal,
                      .nodes = request.job.shapes.nodes(),
                      .notes = notes_on_copies(request, workers.replicas)};
}

}  // namespace

std::optional<GoodputSetup> set_up_redundant(const SetupRequest& request, Diagnostics& diagnostics) {
  const std::optional<Workers> workers = workers_of(request.job, diagnostics);
  if (!workers) return std::nullopt;
  if (request.spec.policy.kind == PolicyKind::kBamboo) return bamboo(request, *workers, diagnostics);
  return recycle(request, *workers);
}

}  // namespace stagecraft
