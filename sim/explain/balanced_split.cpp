#include "sim/explain/balanced_split.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

namespace stagecraft {
namespace {

class Balance {
 public:
  explicit Balance(const Simulation& simulation)
      : places_(simulation.prepared.plan.places()), work_(static_cast<std::size_t>(places_.ranks)) {
    const std::vector<StageContent>& stages = simulation.prepared.plan.stages;
    const auto price = [&](std::size_t stage) { return simulation.prices.stages[stage].total(); };
    const std::size_t last = stages.size() - 1;
    Duration others{};
    std::int64_t of_others = 0;
    for (std::size_t stage = 0; stage <= last; ++stage) {
      layers_.push_back(stages[stage].layers.all());
      work(stage) += price(stage);
      if (stage == last) continue;
      others += price(stage);
      of_others += stages[stage].layers.all();
    }
    const Duration mean = others / std::max<std::int64_t>(of_others, 1);
    for (std::size_t stage = 0; stage <= last; ++stage)
      layer_.push_back(stage < last && layers_[stage] > 0 ? price(stage) / layers_[stage] : mean);
  }

  // A layer at a time goes from the rank with most work to the one that is done with it first, as long as that
  // is sooner.
  [[nodiscard]] std::vector<std::int64_t> split(bool early) && {
    for (;;) {
      const std::size_t from = giver(), to = taker(early);
      if (!can_give(from) || work(to) + layer_[to] >= work(from)) return std::move(layers_);
      work(from) -= layer_[from], --layers_[from];
      work(to) += layer_[to], ++layers_[to];
    }
  }

 private:
  [[nodiscard]] Duration& work(std::size_t stage) {
    return work_[static_cast<std::size_t>(places_.rank_of(static_cast<int>(stage)))];
  }
  // Every stage but the ends needs a layer.
  [[nodiscard]] bool can_give(std::size_t stage) const {
    const bool end = stage == 0 || stage + 1 == layers_.size();
    return layers_[stage] > (end ? 0 : 1);
  }
  // Of the stages of a rank, the one with most layers gives and the one with fewest takes.
  [[nodiscard]] std::size_t giver() {
    std::size_t most = 0;
    for (std::size_t stage = 1; stage < layers_.size(); ++stage)
      if (std::pair(work(stage), layers_[stage]) >= std::pair(work(most), layers_[most])) most = stage;
    return most;
  }
  [[nodiscard]] std::size_t taker(bool early) {
    const auto key = [&](std::size_t stage) {
      return std::pair(work(stage) + layer_[stage], layers_[stage]);
    };
    std::size_t least = early ? 0 : layers_.size() - 1;
    for (std::size_t i = 1; i < layers_.size(); ++i) {
      const std::size_t stage = early ? i : layers_.size() - 1 - i;
      if (key(stage) < key(least)) least = stage;
    }
    return least;
  }

  StagePlaces places_;
  std::vector<std::int64_t> layers_;  // by stage
  std::vector<Duration> layer_;       // the time of one, by stage
  std::vector<Duration> work_;        // by rank
};

}  // namespace

std::vector<std::vector<std::int64_t>> balanced_splits(const Scenario& scenario,
                                                       const Simulation& simulation) {
  const std::vector<StageContent>& stages = simulation.prepared.plan.stages;
  if (!std::holds_alternative<TransformerSpec>(scenario.model) || stages.size() < 2) return {};
  std::vector<std::vector<std::int64_t>> known(1);
  for (const StageContent& stage : stages) known[0].push_back(stage.layers.all());
  for (const bool early : {true, false}) {
    std::vector<std::int64_t> split = Balance(simulation).split(early);
    if (std::ranges::find(known, split) == known.end()) known.push_back(std::move(split));
  }
  known.erase(known.begin());
  return known;
}

}  // namespace stagecraft
