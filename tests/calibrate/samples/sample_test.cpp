#include "calibrate/samples/sample.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "calibrate/samples/json_line.hpp"

namespace stagecraft {
namespace {

using testing::HasSubstr;

Sample a_gemm() {
  return {.family = "gemm",
          .op = "gemm",
          .shape = {{"m", 4096}, {"n", 512}, {"k", 128}, {"batch", 1}},
          .tags = {{"layout", "TN"}, {"dtype", "bf16"}},
          .median_s = 1.9e-4,
          .min_s = 1.8e-4,
          .spread = 0.004,
          .repeats = 40,
          .flops = 536870912,
          .bytes = 5373952,
          .max_error = 0.25,
          .sm_mhz = 1755,
          .power_w = 412.5,
          .setup = {.device = "NVIDIA H200",
                    .driver = "580.1",
                    .cuda = "13.0",
                    .cublas = "13.0.2",
                    .cudnn = "",
                    .nccl = "",
                    .clock_policy = "default",
                    .power_limit_w = 700},
          .date = "2026-11-21T10:00:00Z"};
}

const std::string kLine =
    R"({"schema":"stagecraft.sample/1","family":"gemm","operator":"gemm",)"
    R"("shape":{"batch":1,"k":128,"m":4096,"n":512},"tags":{"dtype":"bf16","layout":"TN"},)"
    R"("median_s":0.00019,"min_s":0.00018,"spread":0.004,"repeats":40,"flops":536870912,"bytes":5373952,)"
    R"("max_error":0.25,"sm_mhz":1755,"power_w":412.5,)"
    R"("setup":{"device":"NVIDIA H200","driver":"580.1","cuda":"13.0","cublas":"13.0.2","cudnn":"","nccl":"",)"
    R"("clock_policy":"default","power_limit_w":700},"date":"2026-11-21T10:00:00Z"})";

std::string replaced(const std::string& from, const std::string& to) {
  std::string line = kLine;
  const std::size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return line.replace(at, from.size(), to);
}

std::string problem_of(const std::string& line) {
  const auto read = parse_sample(line);
  const auto* problem = std::get_if<std::string>(&read);
  return problem != nullptr ? *problem : "no problem";
}

TEST(Sample, IsOneLineOfJson) {
  EXPECT_EQ(std::get<Sample>(parse_sample(kLine)), a_gemm());
  // Numbers are compared as numbers: 0.00019 and 1.9e-04 are the same shortest double.
  EXPECT_EQ(std::get<Sample>(parse_sample(to_json_line(a_gemm()))), a_gemm());
  EXPECT_EQ(to_json_line(a_gemm()).find('\n'), std::string::npos);
}

TEST(Sample, KeepsEveryBitOfEveryNumber) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    Sample sample = a_gemm();
    sample.median_s = std::fabs(std::bit_cast<double>(random()));
    if (!std::isnormal(sample.median_s)) continue;
    sample.min_s = sample.median_s;
    sample.flops = static_cast<double>(random());
    sample.shape["m"] = static_cast<std::int64_t>(random() >> 1);
    EXPECT_EQ(std::get<Sample>(parse_sample(to_json_line(sample))), sample);
  }
}

TEST(Sample, KeepsEveryCharacterOfItsTexts) {
  Sample sample = a_gemm();
  sample.tags["note"] = "quote \" back\\slash \n\t\x01 µ 😀";
  EXPECT_EQ(std::get<Sample>(parse_sample(to_json_line(sample))), sample);
  EXPECT_EQ(std::get<Sample>(parse_sample(replaced("\"TN\"", R"("\u00b5\ud83d\ude00\/")"))).tags["layout"],
            "µ😀/");
}

TEST(Sample, IsRefusedWhenAnyPrefixOfItsLineIsAllThereIs) {
  for (std::size_t size = 0; size < kLine.size(); ++size)
    EXPECT_NE(problem_of(kLine.substr(0, size)), "no problem") << size;
}

TEST(Sample, SaysWhatIsWrongWithItsLine) {
  const struct {
    std::string line, message;
  } cases[] = {
      {replaced("sample/1", "sample/2"),
       "schema \"stagecraft.sample/2\", this program reads \"stagecraft.sample/1\""},
      {replaced(R"("spread":0.004,)", ""), "a sample has no key \"spread\""},
      {replaced("\"date\":", "\"day\":\"x\",\"date\":"), "a sample has the unknown key \"day\""},
      {replaced("\"cuda\":", "\"rocm\":\"7\",\"cuda\":"), "setup has the unknown key \"rocm\""},
      {replaced("\"repeats\":40", "\"repeats\":40,\"repeats\":40"), "the key \"repeats\" stands twice"},
      {replaced("0.00019", "NaN"), "expected a string, a finite number or an object"},
      {replaced("0.00019", "1e999"), "\"median_s\" is 1e999, which no double can hold"},
      {replaced("0.00019", "0"), "\"median_s\" is 0, a time must be positive"},
      {replaced("0.00018", "-1e-4"), "\"min_s\" is -1e-4, a time must be positive"},
      {replaced("0.00018", "0.0002"), "\"min_s\" is above \"median_s\""},
      {replaced("\"m\":4096", "\"m\":-1"), "\"m\" is -1, at least 0 is right"},
      {replaced("\"m\":4096", "\"m\":4096.5"), "\"m\" is 4096.5, a 64-bit integer is needed"},
      {replaced("\"m\":4096", "\"m\":9223372036854775808"), "a 64-bit integer is needed"},
      {replaced("\"m\":4096", "\"m\":04096"), "expected '}'"},
      {replaced("\"repeats\":40", "\"repeats\":0"), "\"repeats\" is 0, at least 1 is right"},
      {replaced("\"repeats\":40", "\"repeats\":4294967296"), "\"repeats\" is too large"},
      {replaced("\"max_error\":0.25", "\"max_error\":-0.5"), "must be -1 (not checked) or not negative"},
      {replaced("\"TN\"", "7"), "\"layout\" must be a string"},
      {replaced("\"TN\"", "[1]"), "expected a string, a finite number or an object"},
      {replaced("\"TN\"", R"("\x")"), "an escape that JSON does not know"},
      {replaced("\"TN\"", R"("\ud83d")"), "half a surrogate pair"},
      {replaced("\"NVIDIA H200\"", "\"\""), "setup.device must not be empty"},
      {kLine + " x", "column " + std::to_string(kLine.size() + 2) + ": text after the object"},
      {std::string(R"({"a":{"a":{"a":{"a":{"a":1}}}}})"), "nested too deeply"},
      {"[]", "column 1: expected '{'"},
      {"", "the line ends too early"},
  };
  for (const auto& [line, message] : cases) EXPECT_THAT(problem_of(line), HasSubstr(message)) << line;
}

TEST(Sample, IsNotWrittenWhenItCouldNotBeReadBack) {
  Sample sample = a_gemm();
  sample.median_s = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW((void)to_json_line(sample), std::invalid_argument);
  sample.median_s = 0;
  EXPECT_THROW((void)to_json_line(sample), std::invalid_argument);
}

TEST(SampleKey, NamesThePointAndNotItsMeasurement) {
  Sample again = a_gemm();
  again.median_s *= 2;
  again.date = "2027-01-01";
  again.tags["seen_algo"] = "66";
  EXPECT_EQ(sample_key(again), sample_key(a_gemm()));
  EXPECT_EQ(sample_key(a_gemm()), "gemm/gemm batch=1 k=128 m=4096 n=512 dtype:bf16 layout:TN");
}

TEST(SampleKey, DiffersWithFamilyOperatorShapeAndTags) {
  Sample other = a_gemm();
  other.shape["k"] = 129;
  EXPECT_NE(sample_key(other), sample_key(a_gemm()));
  other = a_gemm();
  other.tags["load"] = "sustained";
  EXPECT_NE(sample_key(other), sample_key(a_gemm()));
  other = a_gemm();
  other.op = "gemm_mix";
  EXPECT_NE(sample_key(other), sample_key(a_gemm()));
  other = a_gemm();
  other.family = "interference";
  EXPECT_NE(sample_key(other), sample_key(a_gemm()));
}

TEST(SampleFile, MayBeAYamlList) {
  const SampleFile file = parse_samples("- " + kLine + "\n" + kLine + "\n");
  EXPECT_TRUE(file.errors.empty());
  EXPECT_EQ(file.samples, std::vector(2, a_gemm()));
}

TEST(SampleFile, DropsALastLineThatWasInterrupted) {
  const std::string text = kLine + "\n" + kLine.substr(0, 100);
  const SampleFile file = parse_samples(text);
  EXPECT_EQ(file.samples.size(), 1U);
  EXPECT_TRUE(file.errors.empty());
  EXPECT_EQ(complete_size(text), kLine.size() + 1);
  EXPECT_EQ(complete_size(kLine), 0U);
}

TEST(SampleFile, LocatesEachBadLineAndKeepsTheOthers) {
  const SampleFile file = parse_samples(kLine + "\n{}\n" + kLine + "\n\n");
  EXPECT_EQ(file.samples.size(), 2U);
  ASSERT_EQ(file.errors.size(), 2U);
  EXPECT_EQ(file.errors[0].line, 2);
  EXPECT_EQ(file.errors[0].message, "a sample has no key \"schema\"");
  EXPECT_EQ(file.errors[1].line, 4);
}

TEST(WantedPoint, IsTheIdentityOfASampleWithAValue) {
  const std::string line =
      R"({"family":"gemm","operator":"gemm","shape":{"batch":1,"k":128,"m":4096,"n":512},)"
      R"("tags":{"dtype":"bf16","layout":"TN"},"value":3.5})";
  const auto wanted = std::get<WantedPoint>(parse_wanted(line));
  EXPECT_EQ(sample_key(wanted.point), sample_key(a_gemm()));
  EXPECT_EQ(wanted.value, 3.5);
  EXPECT_EQ(to_json_line(wanted), line);
  EXPECT_EQ(std::get<std::string>(parse_wanted(R"({"family":"gemm","operator":"gemm","shape":{}})")),
            "a wanted point has no key \"tags\"");
}

TEST(WantedPoint, IsWorthOneWhereNothingIsSaid) {
  const auto wanted = parse_wanted(R"({"family":"nccl","operator":"broadcast","shape":{},"tags":{}})");
  EXPECT_EQ(std::get<WantedPoint>(wanted).value, 1);
}

}  // namespace
}  // namespace stagecraft
