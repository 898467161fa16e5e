#include "sim/scenario/no_effect.hpp"

#include <string>
#include <string_view>

namespace stagecraft {

namespace {

class Listener {
 public:
  explicit Listener(const Scenario& scenario) : scenario_(scenario) {}

  // A warning if `idle` holds for a key that the user wrote. One key is named once, with the first reason.
  void say(const std::string& path, bool idle, std::string_view why) {
    const auto written = scenario_.origins.find(path);
    if (!idle || written == scenario_.origins.end()) return;
    for (const Diagnostic& said : warnings_)
      if (said.path == path) return;
    warnings_.push_back({.severity = Severity::kWarning,
                         .code = "no-effect",
                         .where = written->second,
                         .path = path,
                         .message = "had no effect: " + std::string(why),
                         .hint = {},
                         .notes = {}});
  }

  [[nodiscard]] std::vector<Diagnostic> warnings() && { return std::move(warnings_); }

 private:
  const Scenario& scenario_;
  std::vector<Diagnostic> warnings_;
};

// Replicas of the model: as given, or what the GPUs leave.
std::int64_t data_ranks(const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  if (parallel.data) return *parallel.data;
  if (!scenario.cluster) return 1;
  return scenario.cluster->gpu_count() / (std::int64_t{parallel.tensor} * parallel.pipeline);
}

void listen_to_stages(Listener& listener, const Scenario& scenario) {
  const char* given = "abstract stages give their costs themselves";
  for (const char* path : {"training.sequence_length", "training.precision", "training.recompute",
                           "training.attention", "training.gradient_dtype", "parallelism.sequence_parallel",
                           "parallelism.zero_stage", "overlap.parameters", "options.scatter_gather",
                           "options.fused_kernels", "options.gradient_accumulation_fusion"})
    listener.say(path, true, given);
  const bool alone = !scenario.cluster;
  listener.say("parallelism.tensor", alone && scenario.parallelism.tensor > 1, given);
  listener.say("parallelism.data", alone && scenario.parallelism.data.value_or(1) > 1,
               "without a cluster no gradients are reduced");
  listener.say("overlap.gradients", alone, "without a cluster no gradients are reduced");
  listener.say("overlap.pipeline", alone, "without a cluster messages take no time");
  listener.say("profile", alone, "without a cluster nothing is priced");
}

}  // namespace

std::vector<Diagnostic> keys_without_effect(const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  Listener listener(scenario);
  if (std::holds_alternative<StagesSpec>(scenario.model)) listen_to_stages(listener, scenario);

  const bool one_replica = data_ranks(scenario) <= 1;
  listener.say("parallelism.sequence_parallel", parallel.sequence_parallel && parallel.tensor == 1,
               "parallelism.tensor is 1");
  listener.say("parallelism.zero_stage", parallel.zero_stage > 0 && one_replica,
               "there is one data rank, and nobody to share with");
  listener.say(
      "training.recompute",
      scenario.training.recompute.granularity == Recompute::kSelective &&
          scenario.training.attention == Attention::kFlash,
      "selective recompute is about the scores of unfused attention, and flash attention keeps none");
  listener.say("overlap.gradients", one_replica, "there is one data rank, and no gradients are reduced");
  listener.say("overlap.parameters", parallel.zero_stage == 0 || one_replica,
               parallel.zero_stage == 0 ? "parallelism.zero_stage is 0, and no parameters are gathered"
                                        : "there is one data rank, and no parameters are gathered");
  listener.say("overlap.pipeline", parallel.pipeline == 1, "parallelism.pipeline is 1");
  listener.say("overlap.context", true, "parallelism.context is 1");
  listener.say("overlap.expert", true, "parallelism.expert is 1");
  listener.say("options.scatter_gather", parallel.pipeline == 1, "parallelism.pipeline is 1");
  listener.say("options.scatter_gather", parallel.tensor == 1, "parallelism.tensor is 1");
  listener.say("options.scatter_gather", parallel.sequence_parallel,
               "under sequence_parallel each tensor rank sends its own part");
  return std::move(listener).warnings();
}

}  // namespace stagecraft
