#include "sim/view/label_view.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/diagnostic.hpp"
#include "sim/lower/prices.hpp"
#include "sim/lower/task_names.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

PassPrice priced(Provenance provenance) {
  PassPrice price;
  price.add(Category::kDataComm, 1ms, provenance);
  return price;
}

const Scenario& llama() {
  static const Scenario scenario = shipped("llama3-8b-64xA100");
  return scenario;
}

ParallelPlan plan() {
  Diagnostics diagnostics;
  return prepare(llama(), diagnostics).value().plan;
}

double share(const IterationPrices& prices, BesideTask task, Provenance provenance) {
  const Label label{.name = std::string(name_of(task)), .stage = -1, .parts = {}};
  return provenance_of(label, prices, plan()).at(static_cast<std::size_t>(provenance));
}

// System: of one rank everything beside passes, measured; messages between stages are assumed.
IterationPrices everything_measured() {
  const PassPrice measured = priced(Provenance::kMeasured), assumed = priced(Provenance::kAssumed);
  IterationPrices prices;
  prices.host = measured;
  prices.edges.push_back({.forward = assumed, .backward = assumed});
  prices.stages.emplace_back();
  prices.stages.back().units.push_back({.gather = measured, .reduce = measured, .replicate = measured});
  RankPrice rank;
  rank.copies = {measured};
  rank.tied_embedding = rank.gradient_norm = rank.partial_norm = rank.norm_message = rank.optimizer =
      measured;
  prices.ranks.push_back(std::move(rank));
  return prices;
}

TEST(Provenance, OfEveryTaskBesidePassesIsThatOfItsOwnPrice) {
  const IterationPrices prices = everything_measured();
  for (std::size_t i = 0; i < kBesideTaskNames.size(); ++i) {
    SCOPED_TRACE(kBesideTaskNames.at(i));
    const auto task = static_cast<BesideTask>(i);
    const bool assumed = task == BesideTask::kSendForward || task == BesideTask::kSendBackward ||
                         task == BesideTask::kRollback;
    EXPECT_EQ(share(prices, task, assumed ? Provenance::kAssumed : Provenance::kMeasured), 1);
  }
}

// The norm over a pipeline rank's own GPUs is not the norm over all.
TEST(Provenance, OfAPartialNormIsNotThatOfTheWholeOne) {
  IterationPrices prices = everything_measured();
  prices.ranks.front().partial_norm = priced(Provenance::kInterpolated);
  EXPECT_EQ(share(prices, BesideTask::kPartialNorm, Provenance::kInterpolated), 1);
  EXPECT_EQ(share(prices, BesideTask::kGradientNorm, Provenance::kMeasured), 1);
}

TEST(ShapeText, IsOfPassesAndOfMessagesBetweenStagesAlone) {
  const auto text = [&](std::string_view name) {
    return shape_text({.name = std::string(name), .stage = -1, .parts = {}}, llama(), plan());
  };
  EXPECT_NE(text("send forward"), "");
  EXPECT_EQ(text("send norm"), "");
  EXPECT_EQ(text("gradient reduction"), "");
}

}  // namespace
}  // namespace stagecraft
