#include "sim/view/chakra.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "sim/lower/lower.hpp"
#include "sim/lower/prices.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/view/wire.hpp"
#include "tests/sim/view/wire_reader.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using namespace stagecraft::literals;

struct Pipeline {
  Program program;
  Timeline timeline;
};

// A forward of `forward`, a backward of twice that, messages of `message`.
Pipeline pipeline(const char* schedule, PipelineShape shape, Duration forward, Duration message) {
  IterationPrices prices;
  const int stages = shape.ranks * shape.chunks;
  for (int stage = 0; stage < stages; ++stage) {
    StagePrice price;
    price.forward.add(Category::kForward, forward, Provenance::kAssumed);
    price.input_gradient.add(Category::kBackward, forward, Provenance::kAssumed);
    price.weight_gradient.add(Category::kBackward, forward, Provenance::kAssumed);
    prices.stages.push_back(price);
    EdgePrice edge;
    if (stage + 1 < stages) {
      edge.forward.add(Category::kPipelineComm, message, Provenance::kAssumed);
      edge.backward.add(Category::kPipelineComm, message, Provenance::kAssumed);
    }
    prices.edges.push_back(edge);
  }
  prices.ranks.resize(static_cast<std::size_t>(shape.ranks));
  Program program = lower(generate(*find_schedule(schedule), shape), prices, {});
  Timeline timeline = run(program);
  return {std::move(program), std::move(timeline)};
}

std::vector<ChakraFile> files_of(const Pipeline& from) {
  std::vector<ChakraFile> files;
  for (std::string& bytes :
       chakra_traces({.program = from.program, .timeline = from.timeline, .message = 16_MiB}))
    files.push_back({.name = "rank " + std::to_string(files.size()), .bytes = std::move(bytes)});
  return files;
}

Duration read_back(const std::vector<ChakraFile>& files, const ChakraNetwork& network = {}) {
  Diagnostics diagnostics;
  const std::optional<Program> program = chakra_program(files, network, diagnostics);
  EXPECT_TRUE(program.has_value()) << (diagnostics.has_errors() ? diagnostics.sorted().front().message : "");
  return program ? run(*program).makespan : Duration{};
}

// Whole microseconds lose nothing: (m + p - 1)(F + B) + K c with p = 8, m = 64, K = 2(p + m - 2 - m/p) = 124.
TEST(ChakraTraces, OfOneFOneBReadBackToTheSameMakespan) {
  const Pipeline made = pipeline("1f1b", {.ranks = 8, .micro_batches = 64}, 1ms, 314us);
  EXPECT_EQ(made.timeline.makespan, 71 * 3ms + 124 * 314us);
  EXPECT_EQ(read_back(files_of(made)), made.timeline.makespan);
}

TEST(ChakraTraces, OfEveryKindOfOrderReadBackToTheSameMakespan) {
  for (const char* schedule : {"gpipe", "interleaved-1f1b", "zb-h1"}) {
    const int chunks = std::string(schedule) == "interleaved-1f1b" ? 2 : 1;
    const Pipeline made = pipeline(schedule, {.ranks = 4, .micro_batches = 8, .chunks = chunks}, 1ms, 50us);
    EXPECT_EQ(read_back(files_of(made)), made.timeline.makespan) << schedule;
  }
}

// Every pass ends within a microsecond of its time on its rank, every message within half a one.
TEST(ChakraTraces, RoundWithCarry) {
  const Pipeline made = pipeline("1f1b", {.ranks = 8, .micro_batches = 64}, 1000333ns, Duration(0));
  const Duration difference = read_back(files_of(made)) - made.timeline.makespan;
  EXPECT_LE(std::chrono::abs(difference), 2 * 8 * 1us);
}

// The sample was run by ASTRA-sim, analytical and congestion-unaware: 9,629,000 ns. 16 MiB at 50 GiB/s, two
// links of 1000 ns.
TEST(ChakraTraces, OfOthersTakeWhatAstraSimMeasures) {
  std::vector<ChakraFile> files;
  for (const char* rank : {"0", "1"}) {
    const std::string name = STAGECRAFT_SOURCE_DIR "/tests/data/chakra/1f1b." + std::string(rank) + ".et";
    std::ifstream file(name, std::ios::binary);
    files.push_back({.name = name, .bytes = std::string(std::istreambuf_iterator<char>(file), {})});
  }
  EXPECT_EQ(read_back(files, {.link = Bandwidth(50.0 * 1024 * 1024 * 1024), .latency = 2us}), 9'629'000ns);
}

// Some readers take a node for one of the CPU unless it says no, and want sizes as int64.
TEST(ChakraTraces, SayWhatReadersInsistOn) {
  const std::string file =
      files_of(pipeline("1f1b", {.ranks = 2, .micro_batches = 2}, 1ms, 314us)).front().bytes;
  std::string_view rest = file;
  int messages = 0, sends = 0;
  while (!rest.empty()) {
    const auto length = static_cast<unsigned char>(rest.front());
    ASSERT_LT(length, 128);  // so that the length is one byte
    const auto node = test::read_message(rest.substr(1, length));
    rest.remove_prefix(1u + length);
    if (messages++ == 0) {
      EXPECT_EQ(test::first_of(node, 1).bytes, "0.0.4");
      continue;
    }
    std::vector<std::string> names;
    for (const test::WireField& field : node) {
      if (field.number != 10) continue;
      const auto attribute = test::read_message(field.bytes);
      names.emplace_back(test::first_of(attribute, 1).bytes);
      if (names.back() == "is_cpu_op") {
        EXPECT_EQ(test::first_of(attribute, 27).number, 27u);
      }
      if (names.back() == "comm_size") {
        EXPECT_EQ(test::first_of(attribute, 9).value, 16u << 20);
      }
    }
    EXPECT_THAT(names, testing::Contains("is_cpu_op"));
    sends += test::first_of(node, 3).value == 5 ? 1 : 0;
  }
  EXPECT_EQ(messages, 1 + 2 * 2 + 2 + 2);  // passes, sends of activations, receives of gradients
  EXPECT_EQ(sends, 2);
}

// System: two ranks; the second steps when it has heard the norm of the first, one number.
TEST(ChakraTraces, SendANormAsOneNumber) {
  ProgramBuilder builder;
  const ResourceId send = builder.add_resource({ResourceKind::kConcurrent, 0, "send"});
  const ResourceId compute = builder.add_resource({ResourceKind::kStream, 1, "compute"});
  const auto norm =
      builder.add_task(send, 1ms, builder.add_label({.name = "send norm", .stage = -1, .parts = {}}));
  const auto step =
      builder.add_task(compute, 1ms, builder.add_label({.name = "optimizer", .stage = -1, .parts = {}}));
  builder.add_dependency(norm, step);
  Program program = std::move(builder).build();
  Timeline timeline = run(program);
  const std::string file = files_of({std::move(program), std::move(timeline)}).front().bytes;
  std::string_view rest = file;
  rest.remove_prefix(1u + static_cast<unsigned char>(rest.front()));  // the metadata
  const auto node = test::read_message(rest.substr(1, static_cast<unsigned char>(rest.front())));
  std::vector<std::uint64_t> sizes;
  for (const test::WireField& field : node) {
    if (field.number != 10) continue;
    const auto attribute = test::read_message(field.bytes);
    if (test::first_of(attribute, 1).bytes == "comm_size")
      sizes.push_back(test::first_of(attribute, 9).value);
  }
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{4}));
}

std::string refusal(std::vector<ChakraFile> files) {
  Diagnostics diagnostics;
  EXPECT_FALSE(chakra_program(files, {}, diagnostics).has_value());
  return diagnostics.has_errors() ? diagnostics.sorted().front().message : "";
}

TEST(ChakraTraces, AreRefusedWhenDamagedOrIncomplete) {
  const std::vector<ChakraFile> files =
      files_of(pipeline("1f1b", {.ranks = 2, .micro_batches = 2}, 1ms, 314us));
  EXPECT_THAT(refusal({files[0]}), testing::HasSubstr("nobody"));
  EXPECT_THAT(refusal({{.name = "empty", .bytes = ""}}), testing::HasSubstr("is no Chakra trace"));
  // The last node, a backward that nobody waits for, is the only whole one that is not missed.
  for (std::size_t length = 1; length + 60 < files[0].bytes.size(); length += 7) {
    Diagnostics diagnostics;
    (void)chakra_program(std::vector<ChakraFile>{{"cut", files[0].bytes.substr(0, length)}, files[1]}, {},
                         diagnostics);
    EXPECT_TRUE(diagnostics.has_errors()) << length;
  }
}

// System: two passes on one stream, of which the first waits for the second.
TEST(ChakraTraces, AreRefusedWhenTheyWaitForThemselves) {
  WireMessage first, second, file;
  first.number(1, 1).text(2, "F0").number(3, 4).number(5, 2).number(7, 10);
  second.number(1, 2).text(2, "B0").number(3, 4).number(7, 10);
  file.delimited(WireMessage().text(1, "0.0.4")).delimited(first).delimited(second);
  EXPECT_EQ(refusal({{.name = "cycle", .bytes = file.bytes()}}),
            "2 nodes wait for each other, the first of them 'rank 0 compute F0'");
}

TEST(ChakraTraces, OfCollectivesAreRefusedByTheirType) {
  WireMessage node, file;
  node.number(1, 1).text(2, "all-reduce").number(3, 7);
  file.delimited(WireMessage().text(1, "0.0.4")).delimited(node);
  EXPECT_THAT(refusal({{.name = "collective", .bytes = file.bytes()}}),
              testing::HasSubstr("'all-reduce' is a node of type 7"));
}

TEST(ChakraTraces, AreNotMadeOfCollectivesThatAreNotSimulated) {
  ProgramBuilder builder;
  const ResourceId data = builder.add_resource({ResourceKind::kStream, 0, "data"});
  (void)builder.add_task(data, 1ms,
                         builder.add_label({.name = "gradient reduction", .stage = -1, .parts = {}}));
  const Program program = std::move(builder).build();
  EXPECT_EQ(no_chakra_because(program, run(program)),
            "its 'gradient reduction' is a collective of replicas that are not simulated");
}

}  // namespace
}  // namespace stagecraft
