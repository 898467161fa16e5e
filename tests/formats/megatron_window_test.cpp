#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "formats/megatron.hpp"
#include "tests/formats/megatron_jobs.hpp"

namespace stagecraft {
namespace {

using namespace testing_megatron;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// A token sees itself and the 7 before it.
TEST(MegatronWindow, IsOfTheTokensBeforeATokenAndOfItself) {
  for (const char* option : {"--window-size 7,0", "--window-size '(7, 0)'", "--window-size=(7,0)"}) {
    const Import import = import_text(job(option));
    EXPECT_EQ(import.at("model.sliding_window.tokens"), "8") << option;
    EXPECT_EQ(import.at("model.sliding_window.full_every"), "absent") << option;
    EXPECT_EQ(import.at("model.sliding_window.full_layers"), "absent") << option;
  }
}

TEST(MegatronWindow, IsReadFromALog) {
  const Import import =
      import_text(job_dump("  window_attn_skip_freq ........................... [1, 0, 1, 0, 1, 1, 1, 1]\n"
                           "  window_size ..................................... (7, 0)\n"
                           "  softmax_type .................................... learnable\n"));
  EXPECT_EQ(import.at("model.sliding_window.tokens"), "8");
  EXPECT_EQ(import.at("model.sliding_window.full_layers"), "1 3");
  EXPECT_EQ(import.at("model.attention_sinks"), "true");
  const Import number =
      import_text(job_dump("  window_attn_skip_freq ........................... 4\n"
                           "  window_size ..................................... (7, 0)\n"));
  EXPECT_EQ(number.at("model.sliding_window.full_every"), "4");
  const Import none =
      import_text(job_dump("  softmax_type .................................... vanilla\n"
                           "  window_attn_skip_freq ........................... None\n"
                           "  window_size ..................................... None\n"));
  EXPECT_EQ(none.at("model.sliding_window"), "absent");
  EXPECT_EQ(none.at("model.attention_sinks"), "absent");
}

// gpt-oss: the limit of its gate is 7.
TEST(MegatronActivation, IsAGateOfGeluAndClamped) {
  const Import import =
      import_text(job("--quick-geglu --glu-linear-offset 1.0 --activation-func-clamp-value 7.0"));
  EXPECT_EQ(import.at("model.activation"), "geglu");
  EXPECT_EQ(import.at("model.clamped_activation"), "true");
  const Import unfused = import_text(job("--quick-geglu --no-bias-gelu-fusion"));
  EXPECT_EQ(unfused.at("model.clamped_activation"), "absent");
  EXPECT_EQ(unfused.at("options.unfused"), "swiglu");
  const Import none = import_text(job_dump("  activation_func_clamp_value ..................... None\n"));
  EXPECT_EQ(none.at("model.clamped_activation"), "absent");
}

// Layers 2, 4, 6 and 8, counted from 1, attend to all tokens.
TEST(MegatronWindow, LeavesLayersOutByANumber) {
  const std::string window = "--window-size 7,0 --window-attn-skip-freq ";
  EXPECT_EQ(import_text(job(window + "2")).at("model.sliding_window.full_every"), "2");
  EXPECT_EQ(import_text(job(window + "8")).at("model.sliding_window.full_every"), "8");
  EXPECT_EQ(import_text(job(window + "9")).at("model.sliding_window.full_every"), "absent");
  EXPECT_EQ(import_text(job(window + "9")).at("model.sliding_window.tokens"), "8");
  const Import all = import_text(job(window + "1"));
  EXPECT_EQ(all.at("model.sliding_window"), "absent");
  EXPECT_THAT(all.fragment->assumed, Contains("no layer has the window: --window-attn-skip-freq 1"));
}

TEST(MegatronWindow, LeavesLayersOutByAList) {
  const std::string window = "--window-size 7,0 --window-attn-skip-freq ";
  EXPECT_EQ(import_text(job(window + "([1]*3+[0])*2")).at("model.sliding_window.full_every"), "4");
  EXPECT_EQ(import_text(job(window + "'[0] + [1]*7'")).at("model.sliding_window.full_layers"), "0");
  EXPECT_EQ(import_text(job(window + "[1]*8")).at("model.sliding_window.full_layers"), "absent");
  EXPECT_THAT(import_text(job(window + "[1]*3+[0]")).messages,
              Contains(HasSubstr("--window-attn-skip-freq: '[1]*3+[0]': 4 entries for 8 layers")));
  EXPECT_THAT(import_text(job(window + "[2]*8")).messages,
              Contains(HasSubstr("2 is neither 0 (all tokens) nor 1 (the window)")));
  EXPECT_THAT(import_text(job(window + "0")).messages,
              Contains(HasSubstr("0 is no distance between layers without the window")));
}

TEST(MegatronWindow, OfAllTokensIsNone) {
  for (const char* option : {"", "--window-size=-1,0", "--window-size '(-1, -1)'"}) {
    const Import import = import_text(job(std::string("--window-attn-skip-freq 2 ") + option));
    EXPECT_EQ(import.at("model.sliding_window"), "absent") << option;
    EXPECT_THAT(import.messages, Not(Contains(HasSubstr("window")))) << option;
    EXPECT_THAT(import.fragment->ignored, Contains("there is no sliding window: --window-attn-skip-freq"));
  }
}

TEST(MegatronWindow, OfTokensBehindATokenIsRefused) {
  for (const char* size : {"7,7", "-1,7", "7,-1"})
    EXPECT_THAT(import_text(job(std::string("--window-size=") + size)).messages,
                Contains(HasSubstr(std::string("--window-size: is not supported: ") + size +
                                   " reaches behind a token")))
        << size;
}

TEST(MegatronWindow, IsAPairOfNumbers) {
  for (const char* size : {"7", "7,0,0", "7 0", "[7,0]", "7,", "seven,0", "7.5,0"})
    EXPECT_THAT(import_text(job(std::string("--window-size ") + size)).messages,
                Contains(HasSubstr("is no pair of whole numbers")))
        << size;
  EXPECT_THAT(import_text(job("--window-size=-2,0")).messages,
              Contains(HasSubstr("--window-size: -2 is not between -1 and 999999999")));
  EXPECT_THAT(import_text(job("--window-size $W")).messages,
              Contains(HasSubstr("the value of $W is not known")));
}

TEST(MegatronWindow, OfLatentAttentionIsRefused) {
  const std::string latent = "--multi-latent-attention ";
  EXPECT_THAT(import_text(job(latent + "--window-size 7,0")).messages,
              Contains(HasSubstr("is not supported: a sliding window in latent attention")));
  EXPECT_THAT(import_text(job(latent + "--softmax-type learnable")).messages,
              Contains(HasSubstr("is not supported: learned scores in latent attention")));
}

// One parameter for each of 4 heads in each of 8 layers.
TEST(MegatronWindow, SoftmaxWithLearnedScoresHasParameters) {
  const Import vanilla = import_text(job("--softmax-type vanilla"));
  const Import constant = import_text(job("--softmax-type off-by-one"));
  const Import learnable = import_text(job("--softmax-type learnable"));
  EXPECT_EQ(vanilla.at("model.attention_sinks"), "absent");
  EXPECT_EQ(constant.at("model.attention_sinks"), "absent");
  EXPECT_EQ(learnable.at("model.attention_sinks"), "true");
  EXPECT_EQ(parameters(learnable) - parameters(vanilla), 4 * 8);
  EXPECT_THAT(constant.fragment->assumed, Contains("--softmax-type off-by-one: its constant is not counted"));
  EXPECT_THAT(import_text(job("--softmax-type learnt")).messages,
              Contains(HasSubstr("'learnt' is none of vanilla, off-by-one and learnable")));
}

}  // namespace
}  // namespace stagecraft
