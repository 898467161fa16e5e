#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "sim/lower/lowering.hpp"
#include "sim/lower/task_names.hpp"

namespace stagecraft {

// Earliest start of the reduction of a chunk's gradients under aligned gradients (--align-grad-reduce); never
// before the chunk's last backward.
Lowering::Handle Lowering::aligned(const RankTasks& tasks, int rank, std::size_t chunk, Handle ready) const {
  const std::optional<std::size_t> last = tasks.last_backward[chunk];
  const bool lone_first = rank == 0 && tasks.last_backward.size() == 1;
  if (!options_.aligned_gradients || !last || lone_first) return ready;
  return tasks.backwards[std::min(*last + static_cast<std::size_t>(rank), tasks.backwards.size() - 1)];
}

void Lowering::add_reductions() {
  for (int rank = 0; rank < schedule_.shape.ranks; ++rank) {
    auto& pending = pending_reductions_[static_cast<std::size_t>(rank)];
    if (!options_.overlap_gradients) {
      std::vector<Handle> ready;
      for (int r = 0; r < options_.replicas; ++r) ready.push_back(*tasks_of(r, rank).last_compute);
      const auto& chunks = prices_.ranks[static_cast<std::size_t>(rank)].gradient_buckets;
      for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk)
        for (const PassPrice& bucket : chunks[chunk]) pending.push_back({&bucket, chunk, 0, ready});
    }
    for (PendingBucket& bucket : pending) {
      for (int r = 0; r < options_.replicas && options_.overlap_gradients; ++r) {
        Handle& ready = bucket.ready[static_cast<std::size_t>(r)];
        ready = aligned(tasks_of(r, rank), rank, bucket.chunk, ready);
      }
      const Handle start = join(bucket.ready);
      for (int r = 0; r < options_.replicas; ++r) {
        const Steps steps = steps_of(*bucket.price, BesideTask::kGradientReduction, bucket.load);
        builder_.add_dependency(start, data_tasks(tasks_of(r, rank), steps).first);
      }
    }
    pending.clear();
    for (int r = 0; r < options_.replicas; ++r) tasks_of(r, rank).buckets = 0;
  }
}

void Lowering::add_pair(std::pair<int, int> ranks, Steps steps, Handle ready, std::vector<Handle>& ends) {
  for (int r = 0; r < options_.replicas; ++r) {
    Steps sums = steps;
    for (const int rank : {ranks.first, ranks.second}) {
      const PassTasks sum = data_tasks(tasks_of(r, rank), sums);
      builder_.add_dependency(ready, sum.first);
      ends.push_back(sum.last);
      for (Kind& step : sums) step.flow.reset();  // the flow of the first rank carries the traffic of both
    }
  }
}

// The two ranks that hold a stage all-reduce its gradients, after the stage's last backward and the
// reductions of both ranks. Both ranks take the stages in the same order.
void Lowering::add_copies(std::vector<Handle>& ends) {
  if (places_.copies() == 1) return;
  for (int stage = 0; stage < places_.stages(); ++stage) {
    const std::pair ranks{places_.rank_of(stage, 0), places_.rank_of(stage, 1)};
    const auto chunk = static_cast<std::size_t>(places_.chunk_of(stage, 0));
    const PassPrice& price = prices_.ranks[static_cast<std::size_t>(ranks.first)].copies[chunk];
    if (price.total() == Duration::zero()) continue;
    std::vector<Handle> both;
    for (int r = 0; r < options_.replicas; ++r) {
      for (int copy = 0; copy < 2; ++copy) {
        const RankTasks& tasks = tasks_of(r, places_.rank_of(stage, copy));
        const auto done = tasks.done[static_cast<std::size_t>(places_.chunk_of(stage, copy))];
        both.push_back(options_.overlap_gradients ? *done : *tasks.last_compute);
        if (tasks.last_data) both.push_back(*tasks.last_data);
      }
    }
    add_pair(ranks, steps_of(price, BesideTask::kCopySum), join(both), ends);
  }
}

// The ranks of the first stage and of another with the word embedding all-reduce its gradient. Appends the last
// task of each to `ends`.
void Lowering::add_tied_embedding(std::vector<Handle>& ends) {
  const PassPrice& price = prices_.ranks.front().tied_embedding;
  if (price.total() == Duration::zero()) return;
  SC_CHECK(prices_.second_embedding.has_value(), "an embedding is summed with that of a known stage");
  const std::pair ranks{0, places_.rank_of(*prices_.second_embedding)};
  std::vector<Handle> both;
  for (int r = 0; r < options_.replicas; ++r) {
    for (const int rank : {ranks.first, ranks.second}) tasks_of(r, rank).add_ends(both);
  }
  const Handle start = join(both);
  add_pair(ranks, steps_of(price, BesideTask::kEmbeddingSum), start, ends);
}

// Parameter gathers that do not overlap the next forwards run at once, and the forwards wait for them.
void Lowering::add_gathers(int rank, RankTasks& tasks) {
  if (options_.overlap_parameters) return;
  for (const auto& chunk : prices_.ranks[static_cast<std::size_t>(rank)].parameter_buckets) {
    for (const PassPrice& bucket : chunk) {
      const PassTasks gather = data_tasks(tasks, steps_of(bucket, BesideTask::kParameterGather));
      builder_.add_dependency(*tasks.last_compute, gather.first);
      tasks.blocking = {gather.last};
    }
  }
}

void Lowering::step_behind_barrier(std::vector<Handle> ends) {
  std::optional<Handle> barrier;  // the gradient norm waits for every rank
  for (int r = 0; r < options_.replicas; ++r) {
    for (int rank = 0; rank < schedule_.shape.ranks; ++rank) {
      const RankPrice& price = prices_.ranks[static_cast<std::size_t>(rank)];
      RankTasks& tasks = tasks_of(r, rank);
      const std::pair<BesideTask, const PassPrice*> steps[] = {
          {BesideTask::kGradientNorm, &price.gradient_norm},
          {BesideTask::kOptimizer, &price.optimizer},
          {BesideTask::kHost, &prices_.host}};
      for (const auto& [does, step] : steps) {
        if (step->total() == Duration::zero()) continue;
        if (!barrier) barrier = join(ends);
        builder_.add_dependency(*barrier, compute_task(tasks, kind_of(*step, does), -1));
      }
      if (options_.iterations > 1) {
        if (!barrier) barrier = join(ends);
        tasks.blocking = {*barrier};
        tasks.step = *tasks.last_compute;
      }
      add_gathers(rank, tasks);
    }
  }
}

void Lowering::add_step(int replica, int rank, std::optional<Handle> ready) {
  RankTasks& tasks = tasks_of(replica, rank);
  const PassPrice& optimizer = prices_.ranks[static_cast<std::size_t>(rank)].optimizer;
  if (ready) tasks.blocking.push_back(*ready);
  const std::pair<BesideTask, const PassPrice*> steps[] = {{BesideTask::kOptimizer, &optimizer},
                                                           {BesideTask::kHost, &prices_.host}};
  for (const auto& [does, step] : steps)
    if (step->total() > Duration::zero()) (void)compute_task(tasks, kind_of(*step, does), -1);
  tasks.step = *tasks.last_compute;
  add_gathers(rank, tasks);
}

// Each rank receives the partial norm of the ranks before it, adds its own, sends the sum on, and steps.
void Lowering::step_post_validated() {
  for (int r = 0; r < options_.replicas; ++r) {
    std::optional<Handle> heard;
    for (int rank = 0; rank < schedule_.shape.ranks; ++rank) {
      const RankPrice& price = prices_.ranks[static_cast<std::size_t>(rank)];
      RankTasks& tasks = tasks_of(r, rank);
      if (tasks.last_data) tasks.blocking.push_back(*tasks.last_data);
      if (heard) tasks.blocking.push_back(*heard);
      // Without time where nothing but the pipeline splits the model: then it only waits.
      const Handle norm = compute_task(tasks, kind_of(price.partial_norm, BesideTask::kPartialNorm), -1);
      heard = norm;
      if (price.norm_message.total() > Duration::zero()) {
        heard = task(tasks.send, kind_of(price.norm_message, BesideTask::kSendNorm));
        builder_.add_dependency(norm, *heard);
      }
      add_step(r, rank, std::nullopt);
    }
  }
}

// Runs the optimizer step that a rank still owes for the previous iteration.
void Lowering::step_delayed(int replica, int rank) {
  RankTasks& tasks = tasks_of(replica, rank);
  if (!std::exchange(tasks.owes_step, false)) return;
  add_step(replica, rank, tasks.reduced);
}

void Lowering::end_iteration(int iteration) {
  add_reductions();
  std::vector<Handle> ends;
  add_copies(ends);
  add_tied_embedding(ends);
  for (const RankTasks& tasks : ranks_) tasks.add_ends(ends);
  const bool last = iteration + 1 == options_.iterations;
  if (options_.step == StepRule::kBarrier) step_behind_barrier(ends);
  if (options_.step == StepRule::kPostValidated) step_post_validated();
  for (int r = 0; r < options_.replicas; ++r) {
    for (int rank = 0; rank < schedule_.shape.ranks; ++rank) {
      RankTasks& tasks = tasks_of(r, rank);
      if (options_.step == StepRule::kOwn) add_step(r, rank, tasks.last_data);
      if (options_.step == StepRule::kDelayed) {
        step_delayed(r, rank);
        tasks.owes_step = true;
        tasks.reduced = tasks.last_data;
        if (last) step_delayed(r, rank);
      }
      if (!last && tasks.step) tasks.segments = {tasks.step, tasks.step};
    }
  }
  if (options_.iterations == 1) return;
  ends.clear();
  for (const RankTasks& tasks : ranks_) tasks.add_ends(ends);
  const Handle end = builder_.add_task(joints_, Duration::zero(), iteration_label_, iteration);
  for (const Handle handle : ends) builder_.add_dependency(handle, end);
}

}  // namespace stagecraft
