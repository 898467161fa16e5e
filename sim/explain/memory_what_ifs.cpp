#include "sim/explain/memory_what_ifs.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/explain/changed_scenario.hpp"
#include "sim/explain/settings_for_memory.hpp"

namespace stagecraft {
namespace {

// Do hosts, not GPUs, lack memory?
bool is_for_hosts(const MemoryLedger& memory) {
  return memory.host.verdict() > verdict_of(memory.heaviest().peak(), memory.capacity);
}

// Memory that GPUs and hosts lack, where their capacity is given.
Bytes shortage_of(const MemoryLedger& memory) {
  const auto lack = [](Bytes used, Bytes capacity) {
    return capacity > Bytes(0) ? std::max(used - capacity, Bytes(0)) : Bytes(0);
  };
  return lack(memory.heaviest().peak(), memory.capacity) + lack(memory.host.used, memory.host.capacity);
}

bool is_better(const MemoryLedger& there, const MemoryLedger& now) {
  if (const Bytes lacking = shortage_of(now); lacking > Bytes(0)) return shortage_of(there) < lacking;
  if (is_for_hosts(now)) return there.host.used < now.host.used && there.verdict() <= now.verdict();
  return there.heaviest().peak() < now.heaviest().peak();
}

// Does its software run its order of passes? Asked of software that nobody named: who names one may mean
// another form of the order.
bool runs_order(const Scenario& scenario) {
  return scenario.parallelism.pipeline == 1 || scenario.options.rules.may_run(scenario.schedule.name);
}

bool fits(const WhatIf& what_if) {
  return what_if.verdict != Verdict::kOutOfMemory;
}

// Where a change that makes the job fit costs more than this share of the time, two together may cost less.
constexpr double kDear = 0.1;
// A pair takes a ledger, and one that fits a simulation.
constexpr std::size_t kPairsTried = 40, kPairsOffered = 3;

// Two changes to try together.
struct Pair {
  std::vector<std::string> set;
  double time = 0;  // if each of them changed the time as it does alone
};

std::string_view key_of(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

// Both changes; nothing where they set a key to different values.
std::optional<std::vector<std::string>> both(const WhatIf& one, const WhatIf& other) {
  std::vector<std::string> set = one.change;
  for (const std::string& assignment : other.change) {
    const auto same_key = [&](const std::string& set_before) {
      return key_of(set_before) == key_of(assignment);
    };
    const auto before = std::ranges::find_if(one.change, same_key);
    if (before == one.change.end())
      set.push_back(assignment);
    else if (*before != assignment)
      return std::nullopt;
  }
  return set;
}

// Tries changes of one scenario.
class Trials {
 public:
  Trials(const Scenario& scenario, const Report& now, const Reload& reload)
      : scenario_(scenario), now_(now), reload_(reload) {}

  [[nodiscard]] std::vector<WhatIf> all() const {
    std::vector<WhatIf> answers;
    const bool is_short = now_.memory.verdict() == Verdict::kOutOfMemory;
    for (std::vector<std::string>& set : settings_for_memory(scenario_, is_short))
      if (std::optional<WhatIf> answer = tried(std::move(set))) answers.push_back(*std::move(answer));
    if (is_short) add_pairs(answers);
    return answers;
  }

 private:
  // The time of the fastest change that fits; nothing where none does.
  [[nodiscard]] static std::optional<Duration> fastest_fit(const std::vector<WhatIf>& answers) {
    std::optional<Duration> best;
    for (const WhatIf& answer : answers)
      if (fits(answer) && (!best || answer.iteration_time < *best)) best = answer.iteration_time;
    return best;
  }

  // Pairs of changes that do not fit alone, but save enough together; those that cost least first.
  [[nodiscard]] std::vector<Pair> pairs_of(const std::vector<WhatIf>& answers) const {
    const double now = to_seconds(now_.iteration_time);
    const Bytes lacking = shortage_of(now_.memory);
    std::vector<Pair> pairs;
    for (auto one = answers.begin(); one != answers.end(); ++one)
      for (auto other = answers.begin(); other != one; ++other) {
        if (fits(*one) || fits(*other) || one->shortage + other->shortage > lacking) continue;
        const double time = to_seconds(one->iteration_time) * to_seconds(other->iteration_time) / now;
        if (auto set = both(*other, *one)) pairs.push_back({.set = *std::move(set), .time = time});
      }
    std::ranges::stable_sort(pairs, {}, &Pair::time);
    return pairs;
  }

  // Adds the first pairs that fit, where no single change does or the fastest is dear.
  void add_pairs(std::vector<WhatIf>& answers) const {
    const std::optional<Duration> fastest = fastest_fit(answers);
    const double dear = (1 + kDear) * to_seconds(now_.iteration_time);
    if (fastest && to_seconds(*fastest) <= dear) return;
    std::size_t tried_pairs = 0, offered = 0;
    for (Pair& pair : pairs_of(answers)) {
      if (fastest && pair.time >= to_seconds(*fastest)) return;
      if (tried_pairs++ == kPairsTried || offered == kPairsOffered) return;
      std::optional<WhatIf> answer = tried(std::move(pair.set), Verdict::kTight);
      if (!answer) continue;
      answers.push_back(*std::move(answer));
      ++offered;
    }
  }

  // A variant that can run.
  [[nodiscard]] std::optional<ChangedScenario> feasible(std::vector<std::string> set) const {
    Diagnostics diagnostics;
    ChangedScenario variant = changed_scenario(scenario_, std::move(set), reload_, diagnostics);
    if (!variant.scenario) return std::nullopt;
    const OptionsSpec& options = variant.scenario->options;
    if (!has_ranks(options.rules, variant.scenario->parallelism)) return std::nullopt;
    if (options.software != scenario_.options.software && !runs_order(*variant.scenario)) return std::nullopt;
    if (scenario_.faults.empty()) variant.scenario->faults.clear();
    if (!prepare(*variant.scenario, diagnostics) || diagnostics.has_errors()) return std::nullopt;
    return variant;
  }

  // Nothing where it cannot run, does not help, or has a worse verdict than `worst`. The ledger says so before
  // an iteration is simulated.
  [[nodiscard]] std::optional<WhatIf> tried(std::vector<std::string> set,
                                            Verdict worst = Verdict::kOutOfMemory) const {
    const std::optional<ChangedScenario> variant = feasible(std::move(set));
    if (!variant) return std::nullopt;
    const MemoryLedger there = memory_of(*variant->scenario);
    if (there.verdict() > worst || !is_better(there, now_.memory)) return std::nullopt;
    const Report report = simulate(*variant->scenario);
    return WhatIf{.change = variant->set,
                  .peak = report.memory.heaviest().peak(),
                  .on_host = report.memory.host.used,
                  .shortage = shortage_of(report.memory),
                  .verdict = report.memory.verdict(),
                  .iteration_time = report.iteration_time};
  }

  const Scenario& scenario_;
  const Report& now_;
  const Reload& reload_;
};

}  // namespace

Scenario without_stop(Scenario scenario, const Report& report) {
  if (!report.finishes()) scenario.faults.clear();
  return scenario;
}

std::vector<WhatIf> memory_what_ifs(const Scenario& scenario, const Report& now, const Reload& reload) {
  std::vector<WhatIf> answers = Trials(scenario, now, reload).all();
  std::ranges::stable_sort(answers, [](const WhatIf& a, const WhatIf& b) {
    if (fits(a) != fits(b)) return fits(a);
    return fits(a) ? a.iteration_time < b.iteration_time : a.shortage < b.shortage;
  });
  return answers;
}

}  // namespace stagecraft
