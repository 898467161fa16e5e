// docs/op-inventory.md names every operator that we emit.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "models/operators.hpp"
#include "tests/models/op_lists.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

using namespace op_lists;

void collect(const LayerOps& layer, std::set<std::string>& all) {
  for (const Ops* ops : {&layer.forward, &layer.recompute, &layer.input_gradient, &layer.weight_gradient}) {
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

TEST(OpInventory, NamesEveryOperator) {
  std::set<std::string> emitted;
  for (const Shard& shard : shards()) {
    for (const TransformerSpec& model : {zoo::gpt_22b(), zoo::llama3_8b()}) {
      collect(layer_operators(model, shard), emitted);
      collect(embedding_operators(model, shard), emitted);
      collect(head_operators(model, shard), emitted);
    }
    for (const std::string_view name : names(optimizer_operators(10, 10, shard))) emitted.emplace(name);
  }
  std::ifstream file(std::filesystem::path(STAGECRAFT_SOURCE_DIR) / "docs" / "op-inventory.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const std::string& name : emitted) {
    EXPECT_NE(text.str().find("`" + name + "`"), std::string::npos) << name;
  }
  EXPECT_FALSE(emitted.empty());
}

}  // namespace
}  // namespace stagecraft
