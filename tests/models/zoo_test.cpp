// Every file of scenarios/models/ loads, has the parameters that its README claims, and nothing is missing on
// either side.
#include "tests/models/zoo.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "base/yaml.hpp"
#include "models/load_model.hpp"
#include "models/model_spec.hpp"
#include "models/operators.hpp"
#include "tests/file_content.hpp"

namespace stagecraft {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(STAGECRAFT_SOURCE_DIR) / "scenarios" / "models";

TransformerSpec load(const std::string& name) {
  Diagnostics diagnostics;
  const auto root = load_yaml_file(kFolder / (name + ".yaml"), diagnostics);
  diagnostics.throw_if_errors();
  YamlMap map(&root.value(), "", {}, diagnostics);
  const ModelSpec model = load_model(map);
  diagnostics.throw_if_errors();
  return std::get<TransformerSpec>(model);
}

std::vector<std::string> names_of_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// 12 l h^2 + 13 l h + (V + s) h + 2 h; l (2haq + 2hkq + 3hf + 2h) + 2 V h + h; with experts E (3 h f_e + h)
// in place of 3 h f, with four norms a layer 4h in place of 2h, with norms of Q and K 2q or (a + k)q more. tests/models/parameters_test.cpp writes out what is special.
const std::map<std::string, std::int64_t> kParameters{{"gpt3-175b", 174'615'846'912},
                                                      {"gpt-1.7b", 1'652'230'656},
                                                      {"gpt-3.6b", 3'562'168'320},
                                                      {"gpt-7.5b", 7'467'786'240},
                                                      {"gpt-18.4b", 18'449'756'160},
                                                      {"gpt-39.1b", 39'096'041'472},
                                                      {"gpt-76.1b", 76'050'739'200},
                                                      {"gpt-145.6b", 145'622'261'760},
                                                      {"gpt-310.1b", 310'130'540'544},
                                                      {"gpt-529.6b", 529'600'819'200},
                                                      {"gpt-1008b", 1'008'038'758'400},
                                                      {"gpt-22b", 22'074'273'792},
                                                      {"gpt-530b", 529'600'819'200},
                                                      {"gpt-1t", 1'008'038'758'400},
                                                      {"llama-2-7b", 6'738'415'616},
                                                      {"llama-2-13b", 13'015'864'320},
                                                      {"llama-2-70b", 68'976'648'192},
                                                      {"llama-3-8b", 8'030'261'248},
                                                      {"llama-3-70b", 70'553'706'496},
                                                      {"llama-3.1-405b", 405'853'388'800},
                                                      {"gpt2", 124'439'808},
                                                      {"mixtral-8x7b", 46'702'792'704},
                                                      {"mixtral-8x22b", 140'630'071'296},
                                                      {"qwen2-7b", 7'615'616'512},
                                                      {"qwen3-0.6b", 596'049'920},
                                                      {"qwen3-30b-a3b", 30'532'122'624},
                                                      {"qwen3-235b-a22b", 235'093'634'560},
                                                      {"gpt-oss-20b", 20'914'757'184},
                                                      {"gpt-oss-120b", 116'829'156'672},
                                                      {"mistral-7b", 7'241'732'096},
                                                      {"gemma-2-9b", 9'241'705'984},
                                                      {"gemma-2-27b", 27'227'128'320},
                                                      {"gemma-3-12b", 11'765'788'416},
                                                      {"gemma-3-27b", 27'009'002'240},
                                                      {"olmo-2-7b", 7'298'617'344},
                                                      {"olmo-2-32b", 32'234'279'936},
                                                      {"olmo-3-7b", 7'298'011'136},
                                                      {"olmo-3-32b", 32'233'522'176},
                                                      {"olmoe-1b-7b", 6'919'161'856},
                                                      {"deepseek-v2", 235'741'434'880},
                                                      {"deepseek-v3", 682'636'472'320}};

const std::map<std::string, std::int64_t> kActive{
    {"mixtral-8x7b", 12'879'925'248},    {"mixtral-8x22b", 39'161'468'928}, {"qwen3-30b-a3b", 3'353'032'704},
    {"qwen3-235b-a22b", 22'190'763'520}, {"deepseek-v2", 21'375'800'320},   {"deepseek-v3", 38'240'382'976},
    {"olmoe-1b-7b", 1'282'017'280},      {"gpt-oss-20b", 4'187'440'704},    {"gpt-oss-120b", 5'711'982'912}};

TEST(Zoo, HasTheParametersOfItsModelsToTheLast) {
  for (const auto& [name, parameters] : kParameters) {
    SCOPED_TRACE(name);
    EXPECT_EQ(parameter_count(load(name)), parameters);
  }
}

TEST(Zoo, HasTheActiveParametersOfItsModelsToTheLast) {
  for (const auto& [name, parameters] : kParameters) {
    SCOPED_TRACE(name);
    const auto sparse = kActive.find(name);
    EXPECT_EQ(active_parameter_count(load(name)), sparse == kActive.end() ? parameters : sparse->second);
  }
}

TEST(Zoo, HasOneFilePerModel) {
  std::vector<std::string> expected;
  for (const auto& [name, parameters] : kParameters) expected.push_back(name);
  EXPECT_EQ(names_of_files(), expected);
}

TEST(Zoo, PrintsItsParametersInItsReadme) {
  const std::string text = content_of(kFolder / "README.md");
  for (const auto& [name, parameters] : kParameters) {
    const std::string row = "| `" + name + "` | " + with_thousands(parameters) + " |";
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
  for (const auto& [name, active] : kActive) {
    const std::string row = "| `" + name + "` | " + with_thousands(active);
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
}

TEST(Zoo, FillsInTheDefaultsOfItsFamilies) {
  EXPECT_EQ(load("gpt3-175b"), zoo::gpt3_175b());
  EXPECT_EQ(load("llama-3-70b"), zoo::llama3_70b());
}

// max_sequence_length is a ceiling where positions are rotated; the models of the tests share one.
TEST(Zoo, HoldsTheModelsThatTheTestsWriteOut) {
  const auto same = [](const std::string& name, TransformerSpec written) {
    TransformerSpec loaded = load(name);
    loaded.max_sequence_length = written.max_sequence_length;
    EXPECT_EQ(loaded, written) << name;
  };
  same("mixtral-8x7b", zoo::mixtral_8x7b());
  same("mixtral-8x22b", zoo::mixtral_8x22b());
  same("qwen2-7b", zoo::qwen2_7b());
  same("qwen3-0.6b", zoo::qwen3_0_6b());
  same("qwen3-30b-a3b", zoo::qwen3_30b_a3b());
  same("qwen3-235b-a22b", zoo::qwen3_235b_a22b());
  same("olmo-2-32b", zoo::olmo2_32b());
  same("gemma-2-9b", zoo::gemma2_9b());
  same("olmoe-1b-7b", zoo::olmoe());
  same("deepseek-v3", zoo::deepseek_v3());
}

// Narayanan et al., Table 1 and Korthikanti et al., Table 3 train the two largest models under two names.
TEST(Zoo, GivesTheTwoLargestGptsTheirOtherNames) {
  EXPECT_EQ(load("gpt-530b"), load("gpt-529.6b"));
  EXPECT_EQ(load("gpt-1t"), load("gpt-1008b"));
}

}  // namespace
}  // namespace stagecraft
