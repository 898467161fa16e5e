#include "sim/fit_schedule.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace stagecraft {
namespace {

class Fitting {
 public:
  Fitting(const Scenario& scenario, const Schedule& schedule, Diagnostics& diagnostics)
      : scenario_(scenario), schedule_(schedule), diagnostics_(diagnostics) {}

  void run(ParallelPlan& plan) {
    const std::vector<int> passes = recompute_passes();
    note(passes, plan);
    if (!schedule_.flush && scenario_.parallelism.zero_stage > 0)
      refuse("parallelism.zero_stage", "contradiction",
             fmt::format("{} steps while passes go on, and has no place to gather sharded weights",
                         scenario_.schedule.name),
             "use 0");
    if (scenario_.schedule.iterations > 1 && scenario_.network.shared())
      refuse("network", "not-supported-yet",
             fmt::format("{} iterations in a row on shared links are not supported yet",
                         scenario_.schedule.iterations),
             schedule_.flush ? "use network: closed-form, or a single iteration with a global step"
                             : "use network: closed-form");
    if (scenario_.schedule.iterations > 1 && !scenario_.faults.empty())
      refuse("faults", "not-supported-yet",
             fmt::format("faults in {} iterations in a row are not supported yet",
                         scenario_.schedule.iterations),
             "use a single iteration with a global step");
    if (scenario_.network.iterations > 1 && !scenario_.faults.empty())
      refuse("faults", "not-supported-yet",
             fmt::format("faults in {} iterations beside other jobs are not supported yet",
                         scenario_.network.iterations),
             "leave network.iterations out");
  }

 private:
  // [stage]
  [[nodiscard]] std::vector<int> recompute_passes() const {
    std::vector<int> passes(static_cast<std::size_t>(schedule_.stages()), 0);
    for (const std::vector<Action>& order : schedule_.ranks)
      for (const Action& action : order)
        if (action.pass == Pass::kRecompute) ++passes[static_cast<std::size_t>(action.stage)];
    return passes;
  }

  void note(const std::vector<int>& passes, ParallelPlan& plan) {
    bool any = false;
    for (std::size_t stage = 0; stage < passes.size(); ++stage) {
      any = any || passes[stage] > 0;
      if (passes[stage] == 0 || passes[stage] == schedule_.shape.micro_batches) continue;
      refuse("schedule", "not-supported-yet",
             fmt::format("stage {} makes {} of {} micro-batches again", stage, passes[stage],
                         schedule_.shape.micro_batches),
             "make all of a stage again, or none");
    }
    if (!any) return;
    for (std::size_t stage = 0; stage < passes.size(); ++stage) {
      StageContent& content = plan.stages[stage];
      content.recompute_pass = passes[stage] > 0;
      if (!content.recompute_pass) content.recomputed = {};
    }
    check_recompute();
  }

  void check_recompute() {
    const std::string& name = scenario_.schedule.name;
    if (std::holds_alternative<StagesSpec>(scenario_.model)) return;
    const auto& model = std::get<TransformerSpec>(scenario_.model);
    if (scenario_.training.recompute.granularity != Recompute::kFull)
      refuse("training.recompute", "contradiction",
             fmt::format("{} runs the forwards of whole stages again", name),
             "use training.recompute: full, or another schedule");
    if (scenario_.parallelism.zero_stage >= 2)
      refuse("parallelism.zero_stage", "not-supported-yet",
             fmt::format("recompute passes of {} with weights or gradients sharded in every pass are not "
                         "supported yet",
                         name),
             "use 0 or 1");
    if (model.mtp_layers > 0)
      refuse("model.mtp_layers", "not-supported-yet",
             fmt::format("recompute passes of {} do not know layers of multi-token prediction yet", name),
             "use 0, or another schedule");
  }

  // At the key, or at the schedule that asks for it.
  void refuse(const std::string& path, const char* code, std::string message, std::string hint) {
    const auto& origins = scenario_.origins;
    const std::string written = origins.contains(path)         ? path
                                : origins.contains("schedule") ? "schedule"
                                                               : "schedule.name";
    diagnostics_.error({.code = code,
                        .where = place_of(scenario_, written),
                        .path = path,
                        .message = std::move(message),
                        .hint = std::move(hint)});
  }

  const Scenario& scenario_;
  const Schedule& schedule_;
  Diagnostics& diagnostics_;
};

}  // namespace

void fit_schedule(const Scenario& scenario, const Schedule& schedule, ParallelPlan& plan,
                  Diagnostics& diagnostics) {
  Fitting(scenario, schedule, diagnostics).run(plan);
}

}  // namespace stagecraft
