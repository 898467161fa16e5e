#include <optional>
#include <utility>
#include <vector>

#include "sim/lower/lowering.hpp"

namespace stagecraft {

void Lowering::add_reductions() {
  for (int rank = 0; rank < schedule_.shape.ranks; ++rank) {
    auto& pending = pending_reductions_[static_cast<std::size_t>(rank)];
    if (!options_.overlap_gradients) {
      std::vector<Handle> ready;
      for (int r = 0; r < options_.replicas; ++r) ready.push_back(*tasks_of(r, rank).last_compute);
      for (const auto& chunk : prices_.ranks[static_cast<std::size_t>(rank)].gradient_buckets) {
        for (const PassPrice& bucket : chunk) pending.push_back({&bucket, ready});
      }
    }
    const double load = options_.overlap_gradients ? load_beside() : 0;
    for (const PendingBucket& bucket : pending) {
      const Handle start = join(bucket.ready);
      for (int r = 0; r < options_.replicas; ++r) {
        const Steps steps = steps_of(*bucket.price, "gradient reduction", load);
        builder_.add_dependency(start, data_tasks(tasks_of(r, rank), steps).first);
      }
    }
  }
}

// First and last rank sum the gradients of the word embedding that both hold; `ends` is what each rank last
// did.
void Lowering::add_tied_embedding(std::vector<Handle>& ends) {
  const PassPrice& price = prices_.ranks.front().tied_embedding;
  if (price.total() == Duration::zero()) return;
  const int last = schedule_.shape.ranks - 1;
  std::vector<Handle> both;
  for (int r = 0; r < options_.replicas; ++r) {
    for (const int rank : {0, last}) {
      const RankTasks& tasks = tasks_of(r, rank);
      both.push_back(*tasks.last_compute);
      if (tasks.last_data) both.push_back(*tasks.last_data);
    }
  }
  const Handle start = join(both);
  for (int r = 0; r < options_.replicas; ++r) {
    Steps sums = steps_of(price, "embedding all-reduce");
    for (const int rank : {0, last}) {
      const PassTasks sum = data_tasks(tasks_of(r, rank), sums);
      builder_.add_dependency(start, sum.first);
      ends.push_back(sum.last);
      for (Kind& step : sums) step.flow.reset();  // one of the two ranks carries what both send
    }
  }
}

void Lowering::add_tail() {
  std::vector<Handle> ends;
  add_tied_embedding(ends);
  for (const RankTasks& tasks : ranks_) {
    ends.push_back(*tasks.last_compute);
    if (tasks.last_data) ends.push_back(*tasks.last_data);
  }
  std::optional<Handle> barrier;  // the gradient norm needs every rank
  for (int r = 0; r < options_.replicas; ++r) {
    for (int rank = 0; rank < schedule_.shape.ranks; ++rank) {
      const RankPrice& price = prices_.ranks[static_cast<std::size_t>(rank)];
      RankTasks& tasks = tasks_of(r, rank);
      const std::pair<const char*, const PassPrice*> steps[] = {
          {"gradient norm", &price.gradient_norm}, {"optimizer", &price.optimizer}, {"host", &prices_.host}};
      for (const auto& [name, step] : steps) {
        if (step->total() == Duration::zero()) continue;
        if (!barrier) barrier = join(ends);
        builder_.add_dependency(*barrier, compute_task(tasks, kind_of(*step, name), -1));
      }
      if (options_.overlap_parameters) continue;
      for (const auto& chunk : price.parameter_buckets) {
        for (const PassPrice& bucket : chunk) {
          const PassTasks gather = data_tasks(tasks, steps_of(bucket, "parameter gather"));
          builder_.add_dependency(*tasks.last_compute, gather.first);
        }
      }
    }
  }
}

}  // namespace stagecraft
