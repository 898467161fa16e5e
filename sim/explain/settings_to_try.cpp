#include "sim/explain/settings_to_try.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <variant>

#include "sim/explain/balanced_split.hpp"
#include "sim/scenario/device_modes.hpp"

namespace stagecraft {
namespace {

class Changes {
 public:
  Changes(const Scenario& scenario, const Simulation& simulation)
      : scenario_(scenario), simulation_(simulation) {}

  [[nodiscard]] std::vector<std::vector<std::string>> all() && {
    schedules();
    splits();
    micro_batches();
    if (const auto* model = std::get_if<TransformerSpec>(&scenario_.model)) {
      recompute();
      overlaps(*model);
      dispatch(*model);
      narrow_kernels(*model);
      launches();
      attention_kernels();
      loss();
      sharding();
      less_sharding();
      offload();
    }
    return std::move(settings_);
  }

 private:
  void add(std::vector<std::string> set) { settings_.push_back(std::move(set)); }

  struct TriedOrder {
    const char* name;
    int chunks;
    bool where_listed = false;  // only for software that lists it, where it is another form of the order
  };
  [[nodiscard]] bool runs(const TriedOrder& order) const {
    const SoftwareRules& software = scenario_.options.rules;
    return software.may_run(order.name) && (software.schedules || !order.where_listed);
  }
  [[nodiscard]] bool is_abstract() const { return std::holds_alternative<StagesSpec>(scenario_.model); }
  // Costs of abstract stages are of a chunk where a key says how many there are; elsewhere an order cuts those
  // of a rank into as many chunks as it has by default.
  [[nodiscard]] bool keeps_work(const TriedOrder& order) const {
    if (!is_abstract()) return true;
    if (scenario_.origins.contains("parallelism.virtual_stages"))
      return order.chunks == scenario_.parallelism.virtual_stages;
    return order.chunks == default_chunks(*find_schedule(order.name));
  }

  // The numbers of chunks of a rank that divide the layers. Abstract stages are cut into any number.
  [[nodiscard]] std::vector<int> chunk_counts() const {
    const auto* model = std::get_if<TransformerSpec>(&scenario_.model);
    if (model == nullptr) return {2, 4};
    std::vector<int> counts;
    const std::int64_t layers = counted_layers(*model, scenario_.parallelism);
    const std::int64_t ranks = scenario_.parallelism.pipeline;
    for (int chunks = 2; ranks * chunks <= layers; ++chunks)
      if (layers % (ranks * chunks) == 0) counts.push_back(chunks);
    return counts;
  }

  void schedules() {
    if (scenario_.parallelism.pipeline == 1 || scenario_.order) return;
    try_order({"1f1b", 1});
    for (const int chunks : chunk_counts()) try_order({"interleaved-1f1b", chunks});
    for (const int chunks : chunk_counts()) try_order({"interleaved-pytorch", chunks, true});
    try_order({"zb-h1", 1});
    for (const char* name : {"interleaved-zb", "zb-v", "dualpipe-v"}) try_order({name, 2});
  }

  void try_order(const TriedOrder& order) {
    if (!runs(order) || !keeps_work(order)) return;
    const int now = scenario_.parallelism.virtual_stages;
    if (now != order.chunks && !scenario_.parallelism.stage_layers.empty()) return;  // of so many stages
    if (scenario_.schedule.name == order.name && now == order.chunks) return;
    std::vector<std::string> set = {fmt::format("schedule={}", order.name)};
    if (now != order.chunks && !is_abstract())
      set.push_back(fmt::format("parallelism.virtual_stages={}", order.chunks));
    add(std::move(set));
  }

  // The keys that count the ends as layers divide the stages only where the even split does not.
  void splits() {
    const ParallelSpec& parallel = scenario_.parallelism;
    for (const std::vector<std::int64_t>& layers : balanced_splits(scenario_, simulation_)) {
      std::vector<std::string> set = {fmt::format("parallelism.stage_layers=[{}]", fmt::join(layers, ","))};
      if (parallel.embedding_as_layer) set.emplace_back("parallelism.embedding_as_layer=false");
      if (parallel.loss_as_layer) set.emplace_back("parallelism.loss_as_layer=false");
      add(std::move(set));
    }
  }

  void micro_batches() {
    const std::int64_t now = scenario_.training.micro_batch_size;
    if (is_abstract()) return;  // costs are of a micro-batch as it is
    add({fmt::format("training.micro_batch_size={}", now * 2)});
    if (now % 2 == 0) add({fmt::format("training.micro_batch_size={}", now / 2)});
  }

  void recompute() {
    for (std::size_t i = 0; i < std::size(kRecomputeNames); ++i)
      if (static_cast<Recompute>(i) != scenario_.training.recompute.granularity)
        add({fmt::format("training.recompute={}", kRecomputeNames[i])});
  }

  void overlaps(const TransformerSpec& model) {
    const OverlapSpec& overlap = scenario_.overlap;
    const ParallelSpec& parallel = scenario_.parallelism;
    for (const auto& [key, off] :
         {std::pair{"gradients", !overlap.gradients},
          {"parameters", !overlap.parameters},
          {"pipeline", !overlap.pipeline},
          {"tensor", !overlap.tensor && parallel.tensor > 1 &&
                         !casts_to_fp4(scenario_.training.precision, scenario_.options.fp8_recipe)},
          {"context", !overlap.context && parallel.context > 1},
          {"expert", !overlap.expert && model.experts},
          {"shared_experts", !overlap.shared_experts && model.experts && model.experts->shared > 0}})
      if (off) add({fmt::format("overlap.{}=true", key)});
  }

  void dispatch(const TransformerSpec& model) {
    if (model.experts && scenario_.parallelism.expert > 1 &&
        scenario_.options.expert_dispatcher == ExpertDispatcher::kAllToAll)
      add({"options.expert_dispatcher=node-aware"});
  }

  // Transformer Engine's kernels of Blackwell.
  void narrow_kernels(const TransformerSpec& model) {
    const OptionsSpec& options = scenario_.options;
    const Precision precision = scenario_.training.precision;
    if (model.experts && has_fused_experts(precision, options.fp8_recipe) &&
        !options.fuses_experts(precision))
      add({"options.fused_experts=true"});
    const bool may_attend = precision == Precision::kFp8 && options.fp8_attention == Fp8Attention::kNone &&
                            can_attend_in_fp8(scenario_, model, Fp8Attention::kCurrent);
    if (may_attend) add({"options.fp8_attention=current"});
  }

  void launches() {
    if (scenario_.options.launches_operators()) add({"options.cuda_graphs=layers"});
  }

  // A later release of the software may run a kernel that the profile, the newest first, lists before the one in use.
  void attention_kernels() {
    if (!scenario_.profile || scenario_.training.attention != Attention::kFlash) return;
    const AttentionModel& attention = scenario_.profile->attention;
    for (std::size_t i = 0; i < attention.in_use; ++i)
      add({"options.attention_kernel=" + attention.kernels[i].name});
  }

  // Transformer Engine's, Liger's or another of one kernel.
  void loss() {
    const OptionsSpec& options = scenario_.options;
    if (!fuses_loss(options.memory, options.rules.memory, options.fused_kernels))
      add({"options.memory.fused_loss=true"});
  }

  void sharding() {
    const ParallelSpec& parallel = scenario_.parallelism;
    if (parallel.tensor > 1 && !parallel.sequence_parallel) add({"parallelism.sequence_parallel=true"});
    if (parallel.zero_stage == 0 && has_replicas(scenario_)) add({"parallelism.zero_stage=1"});
  }

  // Gathers that the job has memory to do without.
  void less_sharding() {
    const int now = zero_stage_in_effect(scenario_);
    for (int less = now - 1; less >= 0; --less) add({fmt::format("parallelism.zero_stage={}", less)});
    if (now == 3 && reshards_after_forward(scenario_)) add({"options.reshard_after_forward=false"});
  }

  void offload() {
    for (const auto& [key, field] : kOffloadKeys)
      if (const double share = scenario_.offload.*field; share > 0)
        for (const double less : {share / 2, 0.0}) add({fmt::format("offload.{}={}", key, less)});
  }

  const Scenario& scenario_;
  const Simulation& simulation_;
  std::vector<std::vector<std::string>> settings_;
};

}  // namespace

std::vector<std::vector<std::string>> settings_to_try(const Scenario& scenario,
                                                      const Simulation& simulation) {
  return Changes(scenario, simulation).all();
}

}  // namespace stagecraft
