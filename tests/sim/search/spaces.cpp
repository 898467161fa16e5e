#include "tests/sim/search/spaces.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/scenario/scenario_tree.hpp"
#include "sim/search/stage_axes.hpp"
#include "tests/sim/repository_files.hpp"

namespace stagecraft::testing_spaces {
namespace {

std::optional<SmallSpace> try_load(const std::string& yaml, const SearchWords& words,
                                   Diagnostics& diagnostics) {
  auto root = parse_yaml(yaml, "small.yaml", diagnostics);
  if (!root) return std::nullopt;
  const YamlNode* section = root->find("search");
  auto space = load_search_space(repository_files().data().root / "scenarios/search/space.yaml", section,
                                 words, diagnostics);
  if (!space) return std::nullopt;
  const ScenarioTree tree{.root = *root, .source = "small.yaml", .folder = "."};
  keep_to_stages(tree, repository_files(), *space, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  auto plans = enumerate_plans(tree, *space, repository_files(), diagnostics);
  if (!plans) return std::nullopt;
  return SmallSpace{.space = *std::move(space), .plans = *std::move(plans)};
}

}  // namespace

SmallSpace load(const std::string& yaml, const SearchWords& words) {
  Diagnostics diagnostics;
  auto small = try_load(yaml, words, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.items()) ADD_FAILURE() << render(diagnostic);
  return small.value();
}

std::string mistakes_of(const std::string& yaml, const SearchWords& words) {
  Diagnostics diagnostics;
  EXPECT_FALSE(try_load(yaml, words, diagnostics).has_value());
  std::string all;
  for (const Diagnostic& diagnostic : diagnostics.sorted()) all += render(diagnostic) + "\n";
  return all;
}

std::string small_gpt(const std::string& more) {
  return "stagecraft: 1\n"
         "model: {family: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 51200, max_sequence_length: 1024}\n"
         "cluster: {node: dgx-a100-80gb, gpus: 8}\n"
         "training: {global_batch_size: 16, attention: unfused}\n" +
         more;
}

std::string small_experts(const std::string& more) {
  return "stagecraft: 1\n"
         "model: {family: llama, layers: 4, hidden: 1024, heads: 16, ffn_hidden: 4096, vocab: 32000,\n"
         "        max_sequence_length: 1024, experts: {count: 4, top_k: 2, ffn_hidden: 2048}}\n"
         "cluster: {node: dgx-h100, gpus: 8}\n"
         "training: {global_batch_size: 16}\n" +
         more;
}

std::string small_stages(const std::string& forward, const std::string& parallelism,
                         const std::string& more) {
  return "stagecraft: 1\n"
         "model: {family: stages, input_gradient: 1 ms, weight_gradient: 1 ms, forward: " +
         forward +
         "}\n"
         "cluster: {node: dgx-a100-80gb, gpus: 8}\n"
         "training: {global_batch_size: 16}\n"
         "parallelism: {pipeline: 4" +
         parallelism + "}\n" + more;
}

}  // namespace stagecraft::testing_spaces
