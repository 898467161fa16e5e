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
    for (const PendingBucket& bucket : pending) {
      const Handle start = join(bucket.ready);
      for (int r = 0; r < options_.replicas; ++r) {
        builder_.add_dependency(start,
                                data_task(tasks_of(r, rank), kind_of(*bucket.price, "gradient reduction")));
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
    for (const int rank : {0, last}) {
      const Handle sum = data_task(tasks_of(r, rank), kind_of(price, "embedding all-reduce"));
      builder_.add_dependency(start, sum);
      ends.push_back(sum);
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
        const Handle task = compute_task(tasks, step->total(), label(name, -1, step->parts()), -1);
        builder_.add_dependency(*barrier, task);
      }
      if (options_.overlap_parameters) continue;
      for (const auto& chunk : price.parameter_buckets) {
        for (const PassPrice& bucket : chunk) {
          const Handle gather = data_task(tasks, kind_of(bucket, "parameter gather"));
          builder_.add_dependency(*tasks.last_compute, gather);
        }
      }
    }
  }
}

}  // namespace stagecraft
