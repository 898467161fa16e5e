#include "formats/megatron_grammar.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace stagecraft {
namespace {

std::string shown(const std::vector<bool>& pattern) {
  std::string text;
  for (const bool one : pattern) text += one ? '1' : '0';
  return text;
}

std::string pattern(std::string_view text, std::int64_t layers) {
  std::string mistake;
  const auto read = read_layer_pattern(text, layers, mistake);
  EXPECT_EQ(read.has_value(), mistake.empty());
  return read ? shown(*read) : "refused: " + mistake;
}

// The examples are those of Megatron-LM's own help (moe_freq_type).
TEST(LayerPattern, EvaluatesListExpressions) {
  EXPECT_EQ(pattern("[0]*3+[1]*5", 8), "00011111");
  EXPECT_EQ(pattern("([1]*3+[0]*1)*3", 12), "111011101110");
  EXPECT_EQ(pattern("([0]+[1]*3)", 4), "0111");
  EXPECT_EQ(pattern("[0, 1, 1, 1]", 4), "0111");
  EXPECT_EQ(pattern("2*[0,1,]", 4), "0101");
}

TEST(LayerPattern, OfAnIntegerHasExpertsWhereItDivides) {
  EXPECT_EQ(pattern("1", 4), "1111");
  EXPECT_EQ(pattern("3", 7), "1001001");
}

TEST(LayerPattern, RefusesWhatIsNoListExpression) {
  EXPECT_EQ(pattern("__import__('os')", 4), "refused: at character 1: a number or a list belongs here");
  EXPECT_EQ(pattern("[0]*3+[1]*58", 60), "refused: 61 entries for 60 layers");
  EXPECT_EQ(pattern("[0,2]", 2), "refused: 2 is neither 0 (dense) nor 1 (experts)");
  EXPECT_EQ(pattern("[0]*[1]", 1), "refused: at character 8: two lists cannot be multiplied");
  EXPECT_EQ(pattern("[[0]]", 1), "refused: at character 5: a list inside a list");
  EXPECT_EQ(pattern("[0]+1", 1), "refused: at character 6: a list and a number cannot be added");
  EXPECT_EQ(pattern("0", 4), "refused: 0 is no distance between layers with experts");
  EXPECT_EQ(pattern("[0", 1), "refused: at character 3: a ']' is missing");
  EXPECT_EQ(pattern("[1] x", 1), "refused: at character 5: what follows it is not part of a list expression");
}

std::string window_pattern(std::string_view text, std::int64_t layers) {
  std::string mistake;
  const auto read = read_window_pattern(text, layers, mistake);
  EXPECT_EQ(read.has_value(), mistake.empty());
  return read ? shown(*read) : "refused: " + mistake;
}

// The examples are those of Megatron-LM's own help (window_attn_skip_freq).
TEST(WindowPattern, LeavesOutTheLayersThatItsNumberDivides) {
  EXPECT_EQ(window_pattern("4", 9), "111011101");
  EXPECT_EQ(window_pattern("1", 3), "000");
  EXPECT_EQ(window_pattern("[1,1,1,0]*3", 12), "111011101110");
  EXPECT_EQ(window_pattern("[1,1,1,0]", 3), "refused: 4 entries for 3 layers");
  EXPECT_EQ(window_pattern("0", 3), "refused: 0 is no distance between layers without the window");
}

TEST(LayerPattern, IsBoundedInSizeAndDepth) {
  EXPECT_EQ(pattern("[0]*99999*99999", 1), "refused: at character 16: the list becomes too long");
  EXPECT_EQ(pattern("[0]*99999999999999999999999", 1), "refused: at character 28: the list becomes too long");
  EXPECT_NE(pattern(std::string(1'000, '(') + "1", 1).find("nested too deeply"), std::string::npos);
}

std::string layout(std::string_view text) {
  std::string mistake;
  const auto stages = read_pipeline_layout(text, mistake);
  if (!stages) return "refused: " + mistake;
  std::string shown;
  for (const LayoutStage& stage : *stages) {
    if (!shown.empty()) shown += ' ';
    if (stage.embedding) shown += 'E';
    shown += std::to_string(stage.layers);
    if (stage.mtp_layers > 0) shown += "m" + std::to_string(stage.mtp_layers);
    if (stage.loss) shown += 'L';
  }
  return shown;
}

TEST(PipelineLayout, SplitsAtBarsAndRepeats) {
  EXPECT_EQ(layout("E|(t|)*3,m|m||L"), "E0 1 1 1 0m1 0m1 0 0L");
  EXPECT_EQ(layout("Et*3|(tt|)*2,tL"), "E3 2 2 1L");
  EXPECT_EQ(layout("EtL"), "E1L");
}

TEST(PipelineLayout, WantsTheEmbeddingFirstAndTheLossLast) {
  EXPECT_EQ(layout("t|EtL"), "refused: the embedding E belongs into the first stage, once");
  EXPECT_EQ(layout("Et|tL|t"), "refused: the loss L belongs into the last stage, once");
  EXPECT_EQ(layout("Et|xL"), "refused: at character 4: 'x' is none of E, t, m, L and |");
  EXPECT_EQ(layout("E(t|L"), "refused: at character 6: a ')' is missing");
  EXPECT_EQ(layout("Et)L"), "refused: at character 3: a ')' without its '('");
  EXPECT_EQ(layout("E((t*999)*999)*999L"), "refused: at character 14: the layout becomes too long");
}

}  // namespace
}  // namespace stagecraft
