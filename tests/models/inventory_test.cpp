// docs/op-inventory.md names every operator that we emit.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "models/operators.hpp"
#include "tests/file_content.hpp"
#include "tests/models/op_lists.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

using namespace op_lists;

void collect(const LayerOps& layer, std::set<std::string>& all) {
  for (const Ops* ops : layer.each()) {
    for (const std::string_view name : names(*ops)) all.emplace(name);
  }
}

// Both stacks, both attentions, every precision, with and without sequence parallelism.
std::vector<Shard> shards() {
  std::vector<Shard> list;
  for (const bool fused : {true, false}) {
    for (const Attention attention : {Attention::kFlash, Attention::kUnfused}) {
      for (const Precision precision :
           {Precision::kFp32, Precision::kFp16, Precision::kBf16, Precision::kFp8}) {
        list.push_back({.sequence = 128,
                        .tensor = 2,
                        .sequence_parallel = fused,
                        .precision = precision,
                        .gradient = fused ? Precision::kFp32 : Precision::kBf16,
                        .attention = attention,
                        .fused_kernels = fused,
                        .gradient_accumulation_fusion = fused});
      }
    }
  }
  return list;
}

// Every exchange over context and expert ranks.
std::vector<Shard> wide_shards() {
  std::vector<Shard> list;
  for (const ContextExchange exchange :
       {ContextExchange::kRing, ContextExchange::kAllGather, ContextExchange::kAllToAll}) {
    for (const ExpertDispatcher dispatcher :
         {ExpertDispatcher::kAllToAll, ExpertDispatcher::kAllGather, ExpertDispatcher::kNodeAware}) {
      list.push_back({.sequence = 128,
                      .tensor = 2,
                      .context = 2,
                      .expert = 2,
                      .expert_tensor = 2,
                      .sequence_parallel = true,
                      .context_exchange = exchange,
                      .expert_dispatcher = dispatcher,
                      .fp8_dispatch = exchange == ContextExchange::kRing});
    }
  }
  return list;
}

void collect_model(const TransformerSpec& model, const Shard& shard, std::set<std::string>& all) {
  collect(layer_operators(model, shard), all);
  collect(embedding_operators(model, shard), all);
  collect(head_operators(model, shard), all);
  collect(mtp_operators(model, shard), all);
  if (model.experts) collect(layer_operators(model, shard, LayerKind::kExperts), all);
}

TransformerSpec experts_with_biases() {
  TransformerSpec model = zoo::mixtral_8x7b();
  model.biases = true;
  return model;
}

TransformerSpec gated_experts() {
  TransformerSpec model = zoo::deepseek_v3();
  model.experts->shared_gate = true;
  return model;
}

TEST(OpInventory, NamesEveryOperator) {
  std::set<std::string> emitted;
  for (const Shard& shard : shards()) {
    for (const TransformerSpec& model :
         {zoo::gpt_22b(), zoo::llama3_8b(), zoo::qwen3_0_6b(), zoo::olmo2_32b(), zoo::gemma2_9b()}) {
      collect_model(model, shard, emitted);
    }
    for (const std::string_view name : names(optimizer_operators(10, 10, shard))) emitted.emplace(name);
  }
  for (const Shard& shard : wide_shards()) {
    for (const TransformerSpec& model : {zoo::mixtral_8x7b(), experts_with_biases(), gated_experts()}) {
      collect_model(model, shard, emitted);
    }
  }
  const std::string text = content_of(STAGECRAFT_SOURCE_DIR "/docs/op-inventory.md");
  for (const std::string& name : emitted) {
    EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
  }
  EXPECT_FALSE(emitted.empty());
}

}  // namespace
}  // namespace stagecraft
