// Golden: the generators give the published order, op for op.
//
// The files of tests/data/schedules come from the schedules' own implementations (see the README there). Each
// is named here, so that a file that is missing fails; and they are counted, so that a file that nobody names
// fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule/notation.hpp"
#include "sim/schedule/play.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/sim/schedule/actions_of.hpp"

namespace stagecraft {
namespace {

constexpr std::array<std::string_view, 13> kGpipe{"p2_m1_v1", "p2_m2_v1",  "p2_m3_v1", "p2_m4_v1", "p2_m7_v1",
                                                  "p2_m8_v1", "p4_m1_v1",  "p4_m3_v1", "p4_m4_v1", "p4_m5_v1",
                                                  "p4_m8_v1", "p4_m11_v1", "p4_m16_v1"};

constexpr std::array<std::string_view, 15> kOneFOneB{
    "p2_m1_v1", "p2_m2_v1", "p2_m3_v1", "p2_m4_v1", "p2_m5_v1", "p2_m8_v1",  "p4_m1_v1", "p4_m2_v1",
    "p4_m3_v1", "p4_m4_v1", "p4_m5_v1", "p4_m8_v1", "p4_m9_v1", "p4_m11_v1", "p4_m16_v1"};

constexpr std::array<std::string_view, 34> kInterleaved{
    "p2_m2_v2",    "p2_m2_v4",     "p2_m3_v2_g3",  "p2_m3_v4_g3",  "p2_m4_v2",     "p2_m4_v2_g4",
    "p2_m4_v4",    "p2_m4_v4_g4",  "p2_m5_v2_g3",  "p2_m5_v4_g3",  "p2_m8_v2",     "p2_m8_v2_g3",
    "p2_m8_v2_g4", "p2_m8_v4",     "p2_m8_v4_g3",  "p2_m8_v4_g4",  "p4_m4_v2",     "p4_m4_v4",
    "p4_m6_v2_g6", "p4_m6_v4_g6",  "p4_m8_v2",     "p4_m8_v2_g8",  "p4_m8_v4",     "p4_m8_v4_g8",
    "p4_m9_v2_g5", "p4_m9_v4_g5",  "p4_m10_v2_g5", "p4_m10_v4_g5", "p4_m13_v2_g9", "p4_m13_v4_g9",
    "p4_m16_v2",   "p4_m16_v2_g8", "p4_m16_v4",    "p4_m16_v4_g8"};

constexpr std::array<std::string_view, 20> kInterleavedPytorch{
    "p2_m2_v2", "p2_m2_v4", "p2_m3_v2",  "p2_m3_v4",  "p2_m4_v2",  "p2_m4_v4", "p2_m8_v2",
    "p2_m8_v4", "p4_m3_v2", "p4_m3_v4",  "p4_m4_v2",  "p4_m4_v4",  "p4_m6_v2", "p4_m6_v4",
    "p4_m8_v2", "p4_m8_v4", "p4_m10_v2", "p4_m10_v4", "p4_m16_v2", "p4_m16_v4"};

constexpr std::array<std::string_view, 44> kInterleavedGroup{
    "p2_m2_v2_g1",  "p2_m2_v2_g2",  "p2_m2_v4_g1",  "p2_m2_v4_g2",  "p2_m3_v2_g1",  "p2_m3_v2_g2",
    "p2_m3_v4_g1",  "p2_m3_v4_g2",  "p2_m4_v2_g1",  "p2_m4_v2_g2",  "p2_m4_v4_g1",  "p2_m4_v4_g2",
    "p2_m5_v2_g1",  "p2_m5_v2_g2",  "p2_m5_v4_g1",  "p2_m5_v4_g2",  "p2_m8_v2_g1",  "p2_m8_v2_g2",
    "p2_m8_v4_g1",  "p2_m8_v4_g2",  "p4_m3_v2_g2",  "p4_m3_v2_g4",  "p4_m3_v4_g2",  "p4_m3_v4_g4",
    "p4_m4_v2_g2",  "p4_m4_v2_g4",  "p4_m4_v4_g2",  "p4_m4_v4_g4",  "p4_m6_v2_g2",  "p4_m6_v2_g4",
    "p4_m6_v4_g2",  "p4_m6_v4_g4",  "p4_m8_v2_g2",  "p4_m8_v2_g4",  "p4_m8_v4_g2",  "p4_m8_v4_g4",
    "p4_m10_v2_g2", "p4_m10_v2_g4", "p4_m10_v4_g2", "p4_m10_v4_g4", "p4_m16_v2_g2", "p4_m16_v2_g4",
    "p4_m16_v4_g2", "p4_m16_v4_g4"};

constexpr std::array<std::string_view, 18> kLoopedBfs{
    "p2_m2_v2", "p2_m2_v4", "p2_m3_v2", "p2_m3_v4", "p2_m4_v2",  "p2_m4_v4",
    "p2_m8_v2", "p2_m8_v4", "p4_m3_v2", "p4_m3_v4", "p4_m4_v2",  "p4_m4_v4",
    "p4_m5_v2", "p4_m5_v4", "p4_m8_v2", "p4_m8_v4", "p4_m16_v2", "p4_m16_v4"};

constexpr std::array<std::string_view, 9> kZbH1{"p2_m2_v1", "p2_m3_v1", "p2_m4_v1",  "p2_m8_v1", "p4_m4_v1",
                                                "p4_m6_v1", "p4_m8_v1", "p4_m10_v1", "p4_m16_v1"};

constexpr std::array<std::string_view, 18> kInterleavedZb{
    "p2_m2_v2", "p2_m2_v4", "p2_m3_v2",  "p2_m3_v4",  "p2_m4_v2",  "p2_m4_v4",
    "p2_m8_v2", "p2_m8_v4", "p4_m4_v2",  "p4_m4_v4",  "p4_m6_v2",  "p4_m6_v4",
    "p4_m8_v2", "p4_m8_v4", "p4_m10_v2", "p4_m10_v4", "p4_m16_v2", "p4_m16_v4"};

constexpr std::array<std::string_view, 11> kZbV{"p2_m2_v2", "p2_m3_v2",  "p2_m4_v2", "p2_m5_v2",
                                                "p2_m8_v2", "p4_m3_v2",  "p4_m4_v2", "p4_m6_v2",
                                                "p4_m8_v2", "p4_m10_v2", "p4_m16_v2"};

constexpr std::array<std::string_view, 8> kDualPipe{"p2_m4_v1", "p2_m6_v1",  "p2_m8_v1",  "p2_m10_v1",
                                                    "p4_m8_v1", "p4_m10_v1", "p4_m16_v1", "p4_m20_v1"};

constexpr std::array<std::string_view, 10> kDualPipeV{"p2_m4_v2",  "p2_m5_v2", "p2_m6_v2", "p2_m8_v2",
                                                      "p2_m10_v2", "p4_m8_v2", "p4_m9_v2", "p4_m10_v2",
                                                      "p4_m16_v2", "p4_m20_v2"};

constexpr std::array<std::string_view, 5> kChimera{"p2_m2_v1", "p4_m4_v1", "p4_m8_v1", "p4_m12_v1",
                                                   "p4_m16_v1"};

constexpr std::array<std::string_view, 9> kVaruna{"p2_m2_v1", "p2_m3_v1", "p2_m4_v1", "p2_m8_v1", "p4_m3_v1",
                                                  "p4_m4_v1", "p4_m5_v1", "p4_m8_v1", "p4_m16_v1"};

const std::filesystem::path kFolder = std::filesystem::path(STAGECRAFT_SOURCE_DIR) / "tests/data/schedules";

struct Golden {
  std::string file;  // "1f1b_p4_m8_v1.txt"
  std::string kind;  // our name of the schedule
};

// How a failed test names its file.
void PrintTo(const Golden& golden, std::ostream* out) {
  *out << golden.file;
}

template <std::size_t n>
void append(std::vector<Golden>& all, const std::array<std::string_view, n>& sizes, const std::string& prefix,
            const std::string& kind) {
  for (const std::string_view size : sizes) all.push_back({prefix + "_" + std::string(size) + ".txt", kind});
}

std::vector<Golden> goldens() {
  std::vector<Golden> all;
  append(all, kGpipe, "gpipe", "gpipe");
  append(all, kOneFOneB, "1f1b", "1f1b");
  append(all, kInterleaved, "interleaved", "interleaved-1f1b");
  append(all, kInterleavedPytorch, "interleaved_pytorch", "interleaved-pytorch");
  append(all, kInterleavedGroup, "interleaved_group", "interleaved-group");
  append(all, kLoopedBfs, "looped_bfs", "looped-bfs");
  append(all, kZbH1, "zb_h1", "zb-h1");
  append(all, kInterleavedZb, "interleaved_zb", "interleaved-zb");
  append(all, kZbV, "zbv", "zb-v");
  append(all, kDualPipe, "dualpipe", "dualpipe");
  append(all, kDualPipeV, "dualpipev", "dualpipe-v");
  append(all, kChimera, "chimera", "chimera");
  append(all, kVaruna, "varuna", "varuna");
  return all;
}

// One order file as it is written.
struct OrderFile {
  std::map<std::string, std::string> head;  // "# key: value"
  std::vector<std::string> orders;          // [rank] -> the text after "rank: "
};

OrderFile read_order_file(const std::filesystem::path& path) {
  OrderFile file;
  std::ifstream in(path);
  EXPECT_TRUE(in.is_open()) << path << " is missing";
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) {
      ADD_FAILURE() << "no 'key: value': " << line;
    } else if (line.starts_with("# ")) {
      file.head[line.substr(2, colon - 2)] = line.substr(colon + 2);
    } else {
      EXPECT_EQ(line.substr(0, colon), std::to_string(file.orders.size())) << "ranks come in order";
      file.orders.push_back(line.substr(colon + 2));
    }
  }
  return file;
}

// The value of "name=value" among words separated by blanks; empty when it is not there.
std::string field(const std::string& words, const std::string& name) {
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    if (word.starts_with(name + "=")) return word.substr(name.size() + 1);
  }
  return {};
}

PipelineShape shape_of(const OrderFile& file, bool grouped) {
  const std::string& sizes = file.head.at("sizes");
  return {.ranks = std::stoi(field(sizes, "p")),
          .micro_batches = std::stoi(field(sizes, "m")),
          .chunks = std::stoi(field(sizes, "v")),
          .group = grouped ? std::stoi(field(sizes, "group")) : 0};
}

// "4,3,2,1" -> {4, 3, 2, 1}
std::vector<int> numbers(const std::string& text) {
  std::vector<int> all;
  std::istringstream in(text);
  for (std::string number; std::getline(in, number, ',');) all.push_back(std::stoi(number));
  return all;
}

// "3/8" or "1"
double ratio(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return std::stod(text);
  return std::stod(text.substr(0, slash)) / std::stod(text.substr(slash + 1));
}

class GoldenOrder : public testing::TestWithParam<Golden> {
 protected:
  const ScheduleKind& kind() const { return *find_schedule(GetParam().kind); }
  const OrderFile file_ = read_order_file(kFolder / GetParam().file);
  const PipelineShape shape_ = shape_of(file_, kind().grouped);
};

TEST_P(GoldenOrder, IsWhatOurGeneratorGives) {
  ASSERT_EQ(kind().constraint(shape_), std::nullopt);
  const Schedule ours = generate(kind(), shape_);
  ASSERT_EQ(ours.ranks.size(), file_.orders.size());
  for (std::size_t rank = 0; rank < ours.ranks.size(); ++rank) {
    EXPECT_EQ(print_actions(ours.ranks[rank]), file_.orders[rank]) << "rank " << rank;
    EXPECT_EQ(ours.ranks[rank], actions_of(file_.orders[rank])) << "rank " << rank;
  }
}

TEST_P(GoldenOrder, HoldsAsManyChunksAsTheFileSays) {
  ASSERT_EQ(kind().constraint(shape_), std::nullopt);
  const Schedule ours = generate(kind(), shape_);
  const std::string& uniform = file_.head.at("uniform");
  const std::string peak = kind().split_backward ? "peak_chunks_freed_at_W" : "peak_chunks";
  EXPECT_EQ(peak_in_flight(ours), numbers(field(uniform, peak)));
  if (kind().split_backward) {
    EXPECT_EQ(peak_in_flight(ours, Held::kUntilInput), numbers(field(uniform, "peak_chunks_freed_at_I")));
  }
  if (kind().recomputes) {
    EXPECT_EQ(peak_in_flight(ours, Held::kInputs), numbers(field(uniform, "peak_inputs")));
  }
}

// F = I = W = R = 1 and B = 2 a chunk, no message time, a fused pair as long as its passes.
TEST_P(GoldenOrder, LastsAsLongAsTheFileSays) {
  ASSERT_EQ(kind().constraint(shape_), std::nullopt);
  const ScheduleCosts costs{.stages = {{.recompute = 1}}};
  const Schedule ours = generate(kind(), shape_);
  const Play times = play(ours, costs);
  const std::string& uniform = file_.head.at("uniform");
  const auto number = [&](const char* name) { return std::stoll(field(uniform, name)); };
  EXPECT_EQ(times.makespan, number("makespan"));
  EXPECT_EQ(times.span, number("span"));
  EXPECT_EQ(period(ours, costs), number("period"));
  EXPECT_EQ(times.ideal(), number("ideal"));
  EXPECT_EQ(times.makespan - times.ideal(), number("bubble_time"));
  EXPECT_EQ(times.span - times.ideal(), number("span_bubble_time"));
  EXPECT_NEAR(times.bubble_over_ideal(), ratio(field(uniform, "bubble_over_ideal")), 1e-12);
  EXPECT_NEAR(times.bubble_fraction(), ratio(field(uniform, "bubble_fraction")), 1e-12);
}

TEST_P(GoldenOrder, IsNamedAfterItsSizes) {
  char sizes[64];
  std::snprintf(sizes, sizeof sizes, "_p%d_m%d_v%d", shape_.ranks, shape_.micro_batches, shape_.chunks);
  EXPECT_EQ(GetParam().file.rfind(file_.head.at("schedule") + sizes, 0), 0u) << sizes;
}

INSTANTIATE_TEST_SUITE_P(Published, GoldenOrder, testing::ValuesIn(goldens()), [](const auto& golden) {
  std::string name = golden.param.file.substr(0, golden.param.file.find('.'));
  std::ranges::replace_if(
      name, [](char c) { return c == '_'; }, 'x');
  return name;
});

TEST(GoldenOrders, NameEveryFileOfTheFolder) {
  std::vector<std::string> present;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".txt") present.push_back(entry.path().filename());
  }
  std::vector<std::string> named;
  for (const Golden& golden : goldens()) named.push_back(golden.file);
  std::ranges::sort(present);
  std::ranges::sort(named);
  EXPECT_EQ(present, named);
  EXPECT_EQ(named.size(), 214u);
}

}  // namespace
}  // namespace stagecraft
