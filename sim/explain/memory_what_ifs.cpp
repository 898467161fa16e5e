#include "sim/explain/memory_what_ifs.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/explain/settings_for_memory.hpp"
#include "sim/explain/variant.hpp"

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

// Does its software run its order of passes? What is not listed may be another form of it, or a mere question of
// what if: it is asked of software that nobody named.
bool runs_order(const Scenario& scenario) {
  const auto& listed = scenario.options.rules.schedules;
  return !listed || scenario.parallelism.pipeline == 1 ||
         std::ranges::find(*listed, scenario.schedule.name) != listed->end();
}

// Tries changes of one scenario.
class Trials {
 public:
  Trials(const Scenario& scenario, const Report& now, const Reload& reload)
      : scenario_(scenario), now_(now), reload_(reload) {}

  [[nodiscard]] std::vector<WhatIf> all() const {
    std::vector<WhatIf> answers;
    for (std::vector<std::string>& set : settings_for_memory(scenario_))
      if (std::optional<WhatIf> answer = tried(std::move(set))) answers.push_back(*std::move(answer));
    return answers;
  }

 private:
  // A variant that can run.
  [[nodiscard]] std::optional<Variant> feasible(std::vector<std::string> set) const {
    Diagnostics diagnostics;
    Variant variant = variant_of(scenario_, std::move(set), reload_, diagnostics);
    if (!variant.scenario) return std::nullopt;
    const OptionsSpec& options = variant.scenario->options;
    if (!has_ranks(options.rules, variant.scenario->parallelism)) return std::nullopt;
    if (options.software != scenario_.options.software && !runs_order(*variant.scenario)) return std::nullopt;
    if (scenario_.faults.empty()) variant.scenario->faults.clear();
    if (!prepare(*variant.scenario, diagnostics) || diagnostics.has_errors()) return std::nullopt;
    return variant;
  }

  // Nothing where it cannot run, or does not help. The ledger says so before an iteration is simulated.
  [[nodiscard]] std::optional<WhatIf> tried(std::vector<std::string> set) const {
    const std::optional<Variant> variant = feasible(std::move(set));
    if (!variant || !is_better(memory_of(*variant->scenario), now_.memory)) return std::nullopt;
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
    const bool a_out = a.verdict == Verdict::kOutOfMemory, b_out = b.verdict == Verdict::kOutOfMemory;
    if (a_out != b_out) return b_out;
    return a_out ? a.shortage < b.shortage : a.iteration_time < b.iteration_time;
  });
  return answers;
}

}  // namespace stagecraft
