#include "sim/search/plan_search.hpp"

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.hpp"
#include "base/for_each_index.hpp"
#include "sim/simulate.hpp"
#include "sim/study/reasons.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kPlansAtOnce = 256;  // a thread judges
// Size of a round of simulations: small enough that later rounds use the results of earlier ones.
constexpr std::size_t kRound = 64;

// State of one thread: a predictor for each cluster, and scenarios to fill plans into.
class Worker {
 public:
  explicit Worker(const SearchPlans& plans) : plans_(plans) {}

  struct Bench {
    Scenario scenario;
    IterationPredictor* predictor;
  };

  Bench& at(const SearchPoint& point) {
    auto known = benches_.find(point.frame);
    if (known == benches_.end()) {
      const Scenario& scenario = plans_.frames[point.frame].scenario;
      known = benches_.emplace(point.frame, Bench{scenario, &predictor_of(*scenario.cluster)}).first;
    }
    fill_in(point, known->second.scenario);
    return known->second;
  }

 private:
  IterationPredictor& predictor_of(const ClusterSpec& cluster) {
    const auto known = std::ranges::find_if(predictors_, [&](const auto& p) { return *p.first == cluster; });
    if (known != predictors_.end()) return known->second;
    predictors_.emplace_back(&cluster, &cluster);
    return predictors_.back().second;
  }

  const SearchPlans& plans_;
  std::list<std::pair<const ClusterSpec*, IterationPredictor>> predictors_;  // one for each cluster
  std::map<std::uint32_t, Bench> benches_;                                   // by frame
};

// Why a plan was rejected.
struct Reason {
  std::string code, path, message, hint;
  double missed_by = 0;  // of an `assert`
};

using Refusals = std::map<std::pair<std::string, std::string>, SearchRefusal>;  // by code and path

std::vector<SearchRefusal> by_frequency(Refusals refusals) {
  std::vector<SearchRefusal> sorted;
  for (auto& [reason, refusal] : refusals) sorted.push_back(std::move(refusal));
  std::ranges::stable_sort(sorted, std::ranges::greater(), &SearchRefusal::count);
  return sorted;
}

Reason reason_of(const std::vector<Diagnostic>& diagnostics) {
  const Diagnostic* error = first_error(diagnostics);
  SC_CHECK(error != nullptr, "a refusal gives its reason");
  return {.code = error->code, .path = error->path, .message = error->message, .hint = error->hint};
}

struct Judged {
  bool placed = false;
  HeldMemory memory;
  Duration bound{};
  Reason reason;  // set where it is not placed

  [[nodiscard]] bool fits() const { return placed && memory.verdict() != Verdict::kOutOfMemory; }
};

struct Simulated {
  RankedPlan plan;
  std::optional<Reason> missed;  // missed `assert`
};

// Seconds of one sample. Batches may differ where they follow the data degree.
double seconds_a_sample(const SearchPoint& point, Duration time) {
  return to_seconds(time) / static_cast<double>(point.global_batch);
}

class Search {
 public:
  Search(const SearchPlans& plans, const SearchOptions& options)
      : plans_(plans), options_(options), judged_(plans.points.size()) {
    for (int i = 0; i < std::max(options.threads, 1); ++i) workers_.emplace_back(plans);
  }

  SearchResult run() {
    judge();
    if (!result_.stopped) simulate();
    rank();
    return std::move(result_);
  }

 private:
  void judge() {
    for_each_index(
        {.count = plans_.points.size(),
         .threads = options_.threads,
         .step = kPlansAtOnce,
         .tick = [this](std::size_t done) { return tick(done / 2); }},
        [this](std::size_t thread, std::size_t i) { judge(workers_[thread], plans_.points[i], judged_[i]); });
    for (std::size_t i = 0; i < judged_.size(); ++i) {
      const Judged& plan = judged_[i];
      result_.placed += plan.placed ? 1 : 0;
      if (plan.fits())
        fitting_.push_back(i);
      else
        refuse_unfit(i, plan);
    }
    result_.fitting = fitting_.size();
  }

  void judge(Worker& worker, const SearchPoint& point, Judged& plan) const {
    Worker::Bench& bench = worker.at(point);
    Diagnostics diagnostics;
    const auto placed = bench.predictor->place(bench.scenario, diagnostics);
    if (!placed) {
      plan.reason = reason_of(diagnostics.sorted());
      return;
    }
    plan.placed = true;
    plan.memory = bench.predictor->memory(bench.scenario, *placed);
    if (!plan.fits() || options_.exhaustive) return;
    plan.bound =
        bench.predictor->at_least(bench.scenario, *placed, bench.predictor->prices(bench.scenario, *placed));
  }

  void refuse(std::size_t point, const Reason& reason) {
    SearchRefusal& refusal = refusals_[plans_.points[point].gpus()][{reason.code, reason.path}];
    if (refusal.count++ > 0 && reason.missed_by >= refusal.missed_by) return;
    refusal = {.code = reason.code,
               .path = reason.path,
               .count = refusal.count,
               .point = point,
               .message = reason.message,
               .hint = reason.hint,
               .missed_by = reason.missed_by};
  }

  void refuse_unfit(std::size_t point, const Judged& plan) {
    if (!plan.placed) return refuse(point, plan.reason);
    const bool is_new = !refusals_[plans_.points[point].gpus()].contains({"out-of-memory", "memory"});
    refuse(point, {.code = "out-of-memory",
                   .path = "memory",
                   .message = is_new ? memory_of(scenario_of(plans_, point)).shortage() : "",
                   .hint = ""});
  }

  void simulate() {
    std::ranges::stable_sort(fitting_, std::ranges::less(),
                             [this](std::size_t i) { return judged_[i].bound; });
    for (std::size_t next = 0; next < fitting_.size() && !result_.stopped;) {
      const std::vector<std::size_t> round = next_round(next);
      const std::vector<Simulated> simulated = simulate_all(round, next - round.size());
      if (result_.stopped) return;
      for (const Simulated& one : simulated) {
        if (one.missed)
          refuse(one.plan.point, *one.missed);
        else
          remember(one.plan);
      }
    }
  }

  // The plans from `next` on that could win, until a round is full; `next` moves behind them.
  [[nodiscard]] std::vector<std::size_t> next_round(std::size_t& next) {
    const std::size_t size = options_.exhaustive ? fitting_.size() : kRound;
    std::vector<std::size_t> round;
    for (; next < fitting_.size() && round.size() < size; ++next) {
      if (could_win(fitting_[next]))
        round.push_back(fitting_[next]);
      else
        ++result_.bounded;
    }
    return round;
  }

  // `before`: plans that are done, simulated or left out.
  [[nodiscard]] std::vector<Simulated> simulate_all(const std::vector<std::size_t>& round,
                                                    std::size_t before) {
    std::vector<Simulated> simulated(round.size());
    const auto tick_round = [&](std::size_t done) {
      const std::size_t points = plans_.points.size();
      return tick((points + points * (before + done) / fitting_.size()) / 2);
    };
    for_each_index(
        {.count = round.size(), .threads = options_.threads, .tick = tick_round},
        [&](std::size_t thread, std::size_t i) { simulated[i] = simulate(workers_[thread], round[i]); });
    return simulated;
  }

  Simulated simulate(Worker& worker, std::size_t point) const {
    Worker::Bench& bench = worker.at(plans_.points[point]);
    Simulated simulated{.plan = {.point = point, .time = {}, .memory = judged_[point].memory}, .missed = {}};
    if (bench.scenario.assertions.empty()) {
      simulated.plan.time = time_of(bench);
    } else {  // these need a whole report, which takes longer
      const Report report = stagecraft::simulate(bench.scenario);
      const std::vector<Diagnostic> missed = missed_assertions(bench.scenario, report);
      if (!missed.empty()) {
        simulated.missed = reason_of(missed);
        simulated.missed->missed_by = missed_by(bench.scenario, report);
      }
      simulated.plan.time = report.iteration_time;
    }
    SC_CHECK(judged_[point].bound <= simulated.plan.time, "the bound is one");
    return simulated;
  }

  static Duration time_of(Worker::Bench& bench) {
    Diagnostics diagnostics;
    const auto placed = bench.predictor->place(bench.scenario, diagnostics);
    SC_CHECK(placed.has_value(), "it was placed before");
    return bench.predictor->time(bench.scenario, *placed, bench.predictor->prices(bench.scenario, *placed));
  }

  [[nodiscard]] double per_sample(std::size_t point, Duration time) const {
    return seconds_a_sample(plans_.points[point], time);
  }

  [[nodiscard]] bool could_win(std::size_t point) const {
    const double bound = per_sample(point, judged_[point].bound);
    const int gpus = plans_.points[point].gpus();
    const auto best = best_.find(gpus);
    if (best == best_.end() || best->second.size() < options_.top || best->second.back() >= bound)
      return true;
    return std::ranges::none_of(front_, [&](const RankedPlan& plan) {
      return plans_.points[plan.point].gpus() <= gpus && plan.memory.peak <= judged_[point].memory.peak &&
             per_sample(plan.point, plan.time) < bound;
    });
  }

  void remember(const RankedPlan& plan) {
    result_.ranked.push_back(plan);
    std::vector<double>& best = best_[plans_.points[plan.point].gpus()];
    const double seconds = per_sample(plan.point, plan.time);
    best.insert(std::ranges::upper_bound(best, seconds), seconds);
    if (best.size() > std::max<std::size_t>(options_.top, 1)) best.pop_back();
    add_to_front(plan);
  }

  // No worse in anything, and better in something or earlier.
  [[nodiscard]] bool dominates(const RankedPlan& a, const RankedPlan& b) const {
    const auto key = [&](const RankedPlan& plan) {
      return std::tuple(per_sample(plan.point, plan.time), plan.memory.peak,
                        plans_.points[plan.point].gpus());
    };
    const auto [time, peak, gpus] = key(a);
    const auto [other_time, other_peak, other_gpus] = key(b);
    if (time > other_time || peak > other_peak || gpus > other_gpus) return false;
    return key(a) != key(b) || a.point < b.point;
  }

  void add_to_front(const RankedPlan& plan) {
    if (std::ranges::any_of(front_, [&](const RankedPlan& other) { return dominates(other, plan); })) return;
    std::erase_if(front_, [&](const RankedPlan& other) { return dominates(plan, other); });
    front_.push_back(plan);
  }

  void rank() {
    const auto key = [this](const RankedPlan& plan) {
      return std::tuple(per_sample(plan.point, plan.time), plan.memory.peak, plan.point);
    };
    std::ranges::sort(result_.ranked, std::ranges::less(), key);
    std::ranges::sort(front_, std::ranges::less(), [&](const RankedPlan& plan) {
      return std::tuple(plans_.points[plan.point].gpus(), key(plan));
    });
    result_.pareto = std::move(front_);
    result_.refusals = by_frequency(all_refusals());
    std::set<int> counts;
    for (const SearchFrame& frame : plans_.frames) counts.insert(frame.gpus);
    for (const int gpus : counts)
      if (!best_.contains(gpus))
        result_.without_plan.push_back({.gpus = gpus, .refusals = by_frequency(refusals_[gpus])});
  }

  [[nodiscard]] Refusals all_refusals() const {
    const auto rank = [](const SearchRefusal& example) {
      return std::pair(example.missed_by, example.point);
    };
    Refusals all;
    for (const auto& [gpus, refusals] : refusals_)
      for (const auto& [reason, refusal] : refusals) {
        const auto [at, is_first] = all.try_emplace(reason, refusal);
        if (is_first) continue;
        SearchRefusal& known = at->second;
        const std::size_t count = known.count + refusal.count;
        if (rank(refusal) < rank(known)) known = refusal;
        known.count = count;
      }
    return all;
  }

  bool tick(std::size_t done) {
    if (!options_.progress(done, plans_.points.size())) result_.stopped = true;
    return !result_.stopped;
  }

  const SearchPlans& plans_;
  const SearchOptions& options_;
  std::vector<Worker> workers_;  // of each thread
  std::vector<Judged> judged_;
  std::vector<std::size_t> fitting_;
  std::map<int, Refusals> refusals_;         // by GPUs
  std::map<int, std::vector<double>> best_;  // by GPUs: the `top` shortest times of a sample, ascending
  std::vector<RankedPlan> front_;
  SearchResult result_;
};

}  // namespace

SearchResult search_plans(const SearchPlans& plans, const SearchOptions& options) {
  return Search(plans, options).run();
}

Scenario scenario_of(const SearchPlans& plans, std::size_t point) {
  Scenario scenario = plans.frames[plans.points[point].frame].scenario;
  fill_in(plans.points[point], scenario);
  return scenario;
}

double sample_time(const SearchPlans& plans, const RankedPlan& plan) {
  return seconds_a_sample(plans.points[plan.point], plan.time);
}

}  // namespace stagecraft
