#include "tests/sim/simulate/axes_grid.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "tests/sampling.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

constexpr const char* kDense =
    "{family: llama, layers: 8, hidden: 1024, heads: 16, kv_heads: 8, ffn_hidden: 4096, vocab: 32000,"
    " max_sequence_length: 8192}";
constexpr const char* kExperts =
    "{family: llama, layers: 8, hidden: 1024, heads: 16, kv_heads: 8, ffn_hidden: 4096, vocab: 32000,"
    " max_sequence_length: 8192,"
    " experts: {count: 8, top_k: 2, ffn_hidden: 1024, shared: 1, first_dense_layers: 1, imbalance: 1.2}}";
constexpr const char* kLatent =
    "{family: llama, layers: 8, hidden: 1024, heads: 16, ffn_hidden: 4096, vocab: 32000,"
    " max_sequence_length: 8192, mtp_layers: 1,"
    " latent_attention: {query_rank: 512, kv_rank: 256, nope_head_size: 64, rope_head_size: 32,"
    " value_head_size: 64},"
    " experts: {count: 8, top_k: 2, ffn_hidden: 512, shared: 1, first_dense_layers: 1}}";

struct Degrees {
  int pipeline, chunks, tensor, context, data;
  [[nodiscard]] int gpus() const { return pipeline * tensor * context * data; }
};

std::vector<Degrees> all_degrees() {
  std::vector<Degrees> all;
  for (const auto& [p, v] : {std::pair{1, 1}, {2, 1}, {2, 2}, {4, 1}, {4, 2}})
    for (const int t : {1, 2, 4})
      for (const int c : {1, 2, 4})
        for (const int d : {1, 2, 4}) {
          const Degrees degrees{p, v, t, c, d};
          const int gpus = degrees.gpus();
          if (gpus <= 64 && (gpus <= 8 || gpus % 8 == 0)) all.push_back(degrees);
        }
  return all;
}

// Draws the same numbers on every machine: a linear congruential generator (Knuth's MMIX constants).
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t limit) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>((state_ >> 33) % limit);
  }
  template <class T>
  T of(const std::vector<T>& values) {
    return values[below(values.size())];
  }

 private:
  std::uint64_t state_;
};

void draw_experts(ParallelSpec& spec, const Degrees& degrees, Draw& draw) {
  const int ranks = degrees.tensor * degrees.context * degrees.data;
  std::vector<std::pair<int, int>> legal;
  for (const int e : {1, 2, 4, 8})
    for (const int et : {1, 2})
      if (ranks % (e * et) == 0) legal.emplace_back(e, et);
  std::tie(spec.expert, spec.expert_tensor) = draw.of(legal);
}

void draw_sharding(ParallelSpec& spec, const Degrees& degrees, Draw& draw) {
  spec.zero_stage = draw.of<int>({0, 1, 2, 3});
  const int replicas = degrees.data * degrees.context;
  const int copies = degrees.tensor * replicas / (spec.expert * spec.expert_tensor);
  if (spec.zero_stage == 0 || replicas < 4 || copies % (replicas / 2) != 0) return;
  if (draw.below(2) == 0) spec.zero_group = 2;
}

ContextExchange draw_exchange(const Scenario& scenario, const Degrees& degrees, Draw& draw) {
  const auto& model = std::get<TransformerSpec>(scenario.model);
  const auto exchange = draw.of<ContextExchange>(
      {ContextExchange::kRing, ContextExchange::kAllGather, ContextExchange::kAllToAll});
  const std::int64_t heads = std::min(model.heads, model.kv_heads) / degrees.tensor;
  const bool splits = heads % degrees.context == 0;
  return splits ? exchange : ContextExchange::kRing;
}

Scenario drawn(Scenario scenario, const Degrees& degrees, Draw& draw) {
  const bool experts = std::get<TransformerSpec>(scenario.model).experts.has_value();
  ParallelSpec& spec = scenario.parallelism;
  spec.pipeline = degrees.pipeline;
  spec.virtual_stages = degrees.chunks;
  spec.tensor = degrees.tensor;
  spec.context = degrees.context;
  spec.data = degrees.data;
  spec.sequence_parallel = experts || draw.below(2) == 0;  // experts need it
  spec.context_exchange = draw_exchange(scenario, degrees, draw);
  if (experts) draw_experts(spec, degrees, draw);
  draw_sharding(spec, degrees, draw);
  scenario.schedule.name = degrees.chunks > 1 ? "interleaved-1f1b" : "1f1b";
  scenario.training.attention = draw.of<Attention>({Attention::kFlash, Attention::kUnfused});
  const auto ways = ways_to_recompute(scenario);
  if (draw.below(3) > 0) scenario.training.recompute = draw.of(ways);
  if (draw.below(4) == 0)
    scenario.offload = {.optimizer = draw.of<double>({0, 0.5, 1}),
                        .activations = draw.of<double>({0, 0.5}),
                        .weights = draw.of<double>({0, 0.25})};
  scenario.overlap = {.gradients = draw.below(4) > 0,
                      .parameters = draw.below(4) > 0,
                      .pipeline = draw.below(4) > 0,
                      .tensor = draw.below(4) == 0,
                      .context = draw.below(4) > 0,
                      .expert = draw.below(4) == 0};
  scenario.training.global_batch_size = 8 * degrees.data;
  scenario.options.fp8_parameters = draw.below(2) == 0;
  if (experts) {
    scenario.options.expert_dispatcher = draw.of<ExpertDispatcher>(
        {ExpertDispatcher::kAllToAll, ExpertDispatcher::kAllGather, ExpertDispatcher::kNodeAware});
    scenario.options.fp8_dispatch = draw.below(2) == 0;
    scenario.options.fused_experts = draw.below(2) == 0;
  }
  const bool predicts = std::get<TransformerSpec>(scenario.model).mtp_layers > 0;
  if (degrees.tensor == 1 && !predicts) scenario.training.autocast = draw.below(4) == 0;
  if (degrees.gpus() < 8)
    scenario.cluster->gpus_used = degrees.gpus();
  else
    scenario.cluster->groups.front().count = degrees.gpus() / 8;
  return scenario;
}

std::string name_of(const char* family, const Scenario& s) {
  const ParallelSpec& p = s.parallelism;
  return fmt::format(
      "{}{} p{} v{} t{}{} c{} ({}) d{} e{} et{} zero {} over {}, recompute {}/{}/{}, offload {} {} {}",
      family, s.training.autocast ? " autocast" : "", p.pipeline, p.virtual_stages, p.tensor,
      p.sequence_parallel ? " sp" : "", p.context,
      kContextExchangeNames[static_cast<std::size_t>(p.context_exchange)], *p.data, p.expert, p.expert_tensor,
      p.zero_stage, p.zero_group.value_or(0), static_cast<int>(s.training.recompute.granularity),
      static_cast<int>(s.training.recompute.method), s.training.recompute.layers, s.offload.optimizer,
      s.offload.activations, s.offload.weights);
}

}  // namespace

std::vector<RecomputeSpec> ways_to_recompute(const Scenario& scenario) {
  const auto& model = std::get<TransformerSpec>(scenario.model);
  std::vector<RecomputeModule> modules = {RecomputeModule::kCoreAttention, RecomputeModule::kLayerNorm,
                                          RecomputeModule::kMlp};
  if (model.experts)
    modules.insert(modules.end(),
                   {RecomputeModule::kMoeActivation, RecomputeModule::kSharedExperts, RecomputeModule::kMoe});
  if (model.latent_attention) modules.push_back(RecomputeModule::kLatentUp);
  modules.push_back(RecomputeModule::kSelfAttention);
  std::vector<RecomputeSpec> ways;
  RecomputeModules several;
  for (const RecomputeModule module : modules) {
    ways.push_back({.granularity = Recompute::kSelective, .modules = RecomputeModules{module}});
    several = several | RecomputeModules{module};
    ways.push_back({.granularity = Recompute::kSelective, .modules = several});
  }
  if (!model.latent_attention && scenario.training.attention == Attention::kFlash)
    ways.push_back({.granularity = Recompute::kSelective,
                    .modules = RecomputeModules{RecomputeModule::kEverySecondProduct}});
  for (const std::int64_t layers : {1, 2, 8}) {
    for (const RecomputeMethod method : {RecomputeMethod::kBlock, RecomputeMethod::kUniform})
      ways.push_back({.granularity = Recompute::kFull, .method = method, .layers = layers});
  }
  return ways;
}

void for_each_in_axes(const std::function<void(const std::string& name, const Scenario& scenario)>& visit) {
  std::uint64_t seed = 0;
  for (const auto& [family, model] :
       {std::pair{"dense", kDense}, {"experts", kExperts}, {"latent", kLatent}}) {
    const Scenario base = scenario_of(std::string("stagecraft: 1\nmodel: ") + model +
                                      "\n"
                                      "cluster: {node: dgx-a100-80gb, nodes: 1}\n"
                                      "training: {global_batch_size: 8, sequence_length: 2048}\n");
    for (const Degrees& degrees : all_degrees()) {
      Draw draw(++seed);
      if (!is_sampled(seed)) continue;
      const Scenario scenario = drawn(base, degrees, draw);
      visit(name_of(family, scenario), scenario);
    }
  }
}

}  // namespace stagecraft
