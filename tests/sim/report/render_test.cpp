// A report made by hand, as text and as JSON: every figure can be checked with a pencil.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/engine/engine.hpp"
#include "sim/lower/lower.hpp"
#include "sim/report/report.hpp"
#include "sim/report/schedule_view.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/schedule/unrolled.hpp"
#include "tests/sim/lower/uniform_prices.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr Bytes kGib{std::int64_t{1} << 30};

// System: 4 GPUs of 100 TFLOP/s, 2 pipeline stages; 40 samples of 100 tokens take 2 s and 400 TFLOP, 480 with
// what is recomputed.
// Expectations: 20 samples/s, 2000 tokens/s, 50 and 60 TFLOP/s per GPU, MFU 0.5, HFU 0.6.
Report made_by_hand() {
  Report report;
  report.scenario = "jobs/small.yaml";
  report.name = "Small \"job\"";
  report.headline = "tp 2 · pp 2 · dp 1 · 1f1b";
  report.gpus = 4;
  report.samples = 40;
  report.tokens = 4000;
  report.iteration_time = 2s;
  report.interval_90 = {1800ms, 2200ms};
  report.model_flops = Flops(400e12);
  report.hardware_flops = Flops(480e12);
  report.peak = FlopRate(100e12);
  report.bubble = {.ideal = 1500ms, .makespan = 1800ms, .span = 1700ms, .over_ideal = 0.2, .fraction = 0.25};
  for (std::size_t c = 0; c < kCategoryCount; ++c) report.breakdown[c] = 10ms;
  report.breakdown[0] = 1900ms;
  report.memory = {.capacity = Bytes(16) * kGib.count(), .stages = {}};
  report.memory.stages = {{.stage = 0, .sums = {kGib, kGib * 2, kGib * 3, kGib * 4, Bytes(0), Bytes(0)}},
                          {.stage = 1, .sums = {kGib, kGib, kGib, kGib, kGib, kGib}}};
  report.provenance = {0.5, 0, 0.25, 0.25, 0};
  report.tasks = 1234;
  report.simulated_ranks = 2;
  report.warnings = {"overlap.expert: had no effect"};
  report.profile = "a device of 2024-01-01";
  report.timeline_hash = "00ff";
  return report;
}

TEST(RenderJson, HasEveryKeyOfTheContract) {
  // Section 3.1, as it stands there.
  const Json wanted =
      Json::parse(R"({"schema": "stagecraft.result/1", "scenario": "path or name", "gpus": 1024,
 "iteration_time_s": 0.0, "interval_90_s": [0.0, 0.0],
 "samples_per_s": 0.0, "tokens_per_s": 0.0, "tokens_per_s_per_gpu": 0.0,
 "model_tflops_per_gpu": 0.0, "hardware_tflops_per_gpu": 0.0, "mfu": 0.0, "hfu": 0.0,
 "bubble": {"ideal_s": 0.0, "makespan_s": 0.0, "span_s": 0.0, "over_ideal": 0.0, "fraction": 0.0},
 "breakdown_s": {"forward": 0.0, "backward": 0.0, "recompute": 0.0, "tensor_comm": 0.0, "context_comm": 0.0,
                 "expert_comm": 0.0, "pipeline_comm": 0.0, "data_comm": 0.0, "optimizer": 0.0, "bubble": 0.0,
                 "other": 0.0},
 "memory": {"verdict": "fits", "capacity_bytes": 0, "peak_bytes": 0, "peak_stage": 0,
            "stages": [{"stage": 0, "weights_bytes": 0, "gradients_bytes": 0, "optimizer_bytes": 0,
                        "activations_bytes": 0, "buffers_bytes": 0, "overhead_bytes": 0, "peak_bytes": 0}]},
 "provenance": {"measured": 0.0, "published": 0.0, "interpolated": 0.0, "analytic": 0.0, "assumed": 0.0},
 "tasks": 0, "simulated_ranks": 0, "warnings": []})");
  const Json got = Json::parse(render_json(made_by_hand()));
  const Json paths = wanted.flatten();
  for (const auto& [path, example] : paths.items()) {
    const Json::json_pointer at(path);
    ASSERT_TRUE(got.contains(at)) << path;
    EXPECT_EQ(got.at(at).is_number(), example.is_number()) << path;
    EXPECT_EQ(got.at(at).is_string(), example.is_string()) << path;
    EXPECT_TRUE(got.at(at).is_number_integer() || !example.is_number_integer()) << path;
  }
}

// Half of the time; below a tenth it is no line. Where something is copied to host memory, copies may be it.
TEST(RenderText, SaysWhereGpusWaitForTheirHost) {
  Report report = made_by_hand();
  report.software = "megatron-core";
  constexpr auto kOther = static_cast<std::size_t>(Category::kOther);
  EXPECT_EQ(render_text(report, false).find("GPUs wait"), std::string::npos);
  report.breakdown[kOther] = report.iteration_time / 2;
  EXPECT_NE(render_text(report, false).find("GPUs wait for it 50.0 % of the time"), std::string::npos);
  EXPECT_EQ(render_text(report, false).find("options.cuda_graphs"), std::string::npos);
  report.graphs_may_help = true;
  EXPECT_NE(render_text(report, false).find("options.cuda_graphs"), std::string::npos);
  report.offload.available = Bandwidth(1e9);
  EXPECT_NE(render_text(report, false).find("GPUs wait for it, or for copies to it, 50.0 % of the time"),
            std::string::npos);
}

TEST(RenderText, SaysWhetherItsSoftwareIsAssumed) {
  Report report = made_by_hand();
  report.software = "megatron-core";
  EXPECT_NE(render_text(report, false).find("software         megatron-core\n"), std::string::npos);
  report.software_is_assumed = true;
  EXPECT_NE(render_text(report, false)
                .find("software         megatron-core, assumed: options.software is not given\n"),
            std::string::npos);
}

TEST(RenderJson, SaysWhatTheReportSays) {
  const std::string text = render_json(made_by_hand());
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const Json got = Json::parse(text);
  EXPECT_EQ(got["schema"], "stagecraft.result/1");
  EXPECT_EQ(got["scenario"], "jobs/small.yaml");
  EXPECT_EQ(got["name"], "Small \"job\"");
  EXPECT_EQ(got["gpus"], 4);
  EXPECT_EQ(got["iteration_time_s"], 2.0);
  EXPECT_DOUBLE_EQ(got["interval_90_s"][0].get<double>(), 1.8);
  EXPECT_DOUBLE_EQ(got["interval_90_s"][1].get<double>(), 2.2);
  EXPECT_EQ(got["samples_per_s"], 20.0);
  EXPECT_EQ(got["tokens_per_s"], 2000.0);
  EXPECT_EQ(got["tokens_per_s_per_gpu"], 500.0);
  EXPECT_DOUBLE_EQ(got["model_tflops_per_gpu"].get<double>(), 50);
  EXPECT_DOUBLE_EQ(got["hardware_tflops_per_gpu"].get<double>(), 60);
  EXPECT_DOUBLE_EQ(got["mfu"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(got["hfu"].get<double>(), 0.6);
  EXPECT_DOUBLE_EQ(got["bubble"]["ideal_s"].get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(got["bubble"]["makespan_s"].get<double>(), 1.8);
  EXPECT_DOUBLE_EQ(got["bubble"]["span_s"].get<double>(), 1.7);
  EXPECT_EQ(got["bubble"]["over_ideal"], 0.2);
  EXPECT_EQ(got["bubble"]["fraction"], 0.25);
  EXPECT_DOUBLE_EQ(got["breakdown_s"]["forward"].get<double>(), 1.9);
  EXPECT_DOUBLE_EQ(got["breakdown_s"]["other"].get<double>(), 0.01);
  EXPECT_EQ(got["provenance"]["interpolated"], 0.25);
  EXPECT_EQ(got["tasks"], 1234);
  EXPECT_EQ(got["simulated_ranks"], 2);
  EXPECT_EQ(got["warnings"], Json({"overlap.expert: had no effect"}));
  EXPECT_EQ(got["timeline_hash"], "00ff");
}

TEST(RenderJson, GivesTheLedgerInBytesAndNamesTheHeaviestStage) {
  const Json memory = Json::parse(render_json(made_by_hand()))["memory"];
  EXPECT_EQ(memory["verdict"], "fits");  // 10 of 16 GiB
  EXPECT_EQ(memory["capacity_bytes"], 16 * kGib.count());
  EXPECT_EQ(memory["peak_bytes"], 10 * kGib.count());
  EXPECT_EQ(memory["peak_stage"], 0);
  ASSERT_EQ(memory["stages"].size(), 2u);
  EXPECT_EQ(memory["stages"][0]["activations_bytes"], 4 * kGib.count());
  EXPECT_EQ(memory["stages"][1]["overhead_bytes"], kGib.count());
  EXPECT_EQ(memory["stages"][1]["peak_bytes"], 6 * kGib.count());
}

TEST(RenderText, IsTheReportLineByLine) {
  EXPECT_EQ(render_text(made_by_hand(), false),
            "Small \"job\"\n"
            "layout           4 GPUs: tp 2 · pp 2 · dp 1 · 1f1b\n"
            "iteration        2.00 s   (90 %: 1.80 s – 2.20 s)\n"
            "throughput       2,000 tokens/s   500 tokens/s/GPU   20 samples/s\n"
            "model FLOP/s     50 TFLOP/s per GPU   MFU 50.0 %\n"
            "hardware FLOP/s  60 TFLOP/s per GPU   HFU 60.0 %\n"
            "memory           10.0 GiB of 16.0 GiB on stage 0     fits, 6.00 GiB free\n"
            "where it goes    forward 95.0 %   backward 0.5 %   recompute 0.5 %\n"
            "                 tensor 0.5 %   context 0.5 %   expert 0.5 %   pipeline 0.5 %\n"
            "                 data 0.5 %   optimizer 0.5 %   bubble 0.5 %   other 0.5 %\n"
            "bubble           20.0 % over ideal, 25.0 % of rank time\n"
            "                 makespan 1.80 s, span 1.70 s\n"
            "based on         measured 50.0 %   interpolated 25.0 %   analytic 25.0 %\n"
            "profile          a device of 2024-01-01\n"
            "notes            overlap.expert: had no effect\n");
}

TEST(RenderText, CountsShapesByProvenanceAndListsThemWhereAsked) {
  Report report = made_by_hand();
  report.shapes = {
      {.shape = "2048 x 6144 x 12288 TN bf16", .provenance = Provenance::kMeasured, .share = 0.75},
      {.shape = "flash forward 12 x 2048 x 2048 of 128",
       .provenance = Provenance::kInterpolated,
       .share = 0.25}};
  const std::string counts = "shapes           2 of GEMMs and attention: 1 measured, 1 interpolated\n";
  const std::string list =
      "shape            75.0 %  measured      2048 x 6144 x 12288 TN bf16\n"
      "shape            25.0 %  interpolated  flash forward 12 x 2048 x 2048 of 128\n";
  EXPECT_NE(render_text(report, false).find(counts), std::string::npos);
  EXPECT_EQ(render_text(report, false).find(list), std::string::npos);
  EXPECT_NE(render_text(report, true).find(list), std::string::npos);
  const Json json = Json::parse(render_json(report))["shapes"];
  EXPECT_EQ(json[1], Json({{"shape", "flash forward 12 x 2048 x 2048 of 128"},
                           {"provenance", "interpolated"},
                           {"share", 0.25}}));
}

TEST(RenderText, SaysHowMuchMemoryIsMissing) {
  Report report = made_by_hand();
  report.memory.capacity = Bytes(8) * kGib.count();
  const std::string text = render_text(report, false);
  EXPECT_NE(text.find("10.0 GiB of 8.00 GiB on stage 0     out-of-memory by 2.00 GiB"), std::string::npos)
      << text;
}

TEST(RenderText, HasNoLinesAboutWhatAnAbstractPipelineLacks) {
  Report report = made_by_hand();
  report.tokens = 0;
  report.peak = FlopRate(0);
  report.memory.capacity = Bytes(0);
  report.profile.clear();
  report.warnings.clear();
  const std::string text = render_text(report, false);
  for (const char* absent : {"tokens", "FLOP/s", "profile", "notes", "free"})
    EXPECT_EQ(text.find(absent), std::string::npos) << absent << "\n" << text;
  EXPECT_NE(text.find("throughput       20 samples/s\n"), std::string::npos) << text;
  EXPECT_NE(text.find("10.0 GiB on stage 0 (capacity not given)\n"), std::string::npos) << text;
}

TEST(RenderText, BreaksLongNotesBetweenWords) {
  Report report = made_by_hand();
  report.warnings = {"one two three four five six seven eight nine ten eleven twelve thirteen fourteen"};
  const std::string text = render_text(report, false);
  EXPECT_NE(text.find("notes            one two three four five six seven eight nine ten eleven twelve\n"
                      "                 thirteen fourteen\n"),
            std::string::npos)
      << text;
}

TEST(RenderText, AddsFormulasAndAssumptionsWhenVerbose) {
  Report report = made_by_hand();
  report.assumptions = {"training.attention: flash"};
  const std::string brief = render_text(report, false), verbose = render_text(report, true);
  EXPECT_EQ(brief.find("training.attention"), std::string::npos);
  EXPECT_TRUE(verbose.starts_with(brief));
  EXPECT_NE(verbose.find("assumed          training.attention: flash\n"), std::string::npos) << verbose;
  EXPECT_NE(verbose.find("simulated        1,234 tasks on 2 ranks, timeline 00ff\n"), std::string::npos);
}

// Without a peak, or without an end, there is no MFU.
TEST(RenderText, ExplainsOnlyTheFiguresThatItHas) {
  Report report = made_by_hand();
  EXPECT_NE(render_text(report, true).find("MFU = "), std::string::npos);
  report.faults = {.faults = {"node 1 dies"}, .without = 2s, .stall = 1s};
  EXPECT_EQ(render_text(report, true).find("MFU"), std::string::npos);
  report.faults.reset();
  report.peak = FlopRate(0);
  const std::string text = render_text(report, true);
  EXPECT_EQ(text.find("MFU"), std::string::npos) << text;
  EXPECT_NE(text.find("formulas         bubble over ideal = "), std::string::npos) << text;
}

// What a rank without a pipeline is idle, it waits for traffic.
TEST(RenderText, HasNoBubbleWithoutAPipeline) {
  Report report = made_by_hand();
  report.memory.stages.resize(1);
  const std::string text = render_text(report, true);
  EXPECT_NE(text.find("\nidle             20.0 % over ideal, 25.0 % of rank time, waiting for traffic\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("idle over ideal = "), std::string::npos) << text;
  EXPECT_EQ(text.find("bubble over ideal"), std::string::npos) << text;
  report.bubble.over_ideal = report.bubble.fraction = 0;
  EXPECT_NE(render_text(report, false).find("\nidle             0.0 % over ideal, 0.0 % of rank time\n"),
            std::string::npos);
}

// A collective that has lost a member holds up the passes behind it on all ranks.
TEST(RenderText, SaysWhomAnIdleRankWaitsFor) {
  Report report = made_by_hand();
  const StalledRank own{.rank = "data 0",
                        .since = 1s,
                        .task = "F0",
                        .waits_for = "parameter gather",
                        .waits_for_rank = "data 0"};
  StalledRank other = own;
  other.waits_for_rank = "data 1";
  report.faults = {.faults = {"node 1 dies"}, .without = 2s, .stall = 1s, .ranks = {own, other}};
  const std::string text = render_text(report, false);
  EXPECT_NE(text.find("data 0: idle from 1.00 s on: F0 waits for its parameter gather\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("F0 waits for parameter gather of"), std::string::npos) << text;
}

TEST(RenderText, CountsTheIdleRanksThatItDoesNotList) {
  Report report = made_by_hand();
  report.faults = {
      .faults = {"node 1 dies"}, .without = 2s, .stall = 1s, .ranks = std::vector<StalledRank>(9)};
  EXPECT_NE(render_text(report, false).find("and 1 more rank (--verbose)\n"), std::string::npos);
  report.faults->ranks.emplace_back();
  EXPECT_NE(render_text(report, false).find("and 2 more ranks (--verbose)\n"), std::string::npos);
}

TEST(RenderMemory, DrawsABarPerStageWithAsManyCellsAsItsShareOfTheCapacity) {
  const std::string text = render_memory_text(made_by_hand());
  // 40 cells for 16 GiB: 2.5 a GiB, ends rounded: 1, 3, 6, 10 GiB are 3, 8, 15, 25 cells.
  EXPECT_NE(text.find("  stage   0 WWWGGGGGOOOOOOOAAAAAAAAAA............... 10.0 GiB < heaviest\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  stage   1 WWWGGOOOAAbbboo......................... 6.00 GiB\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("stage   weights  gradients  optimizer  activations   buffers  overhead      peak\n"
                      "  0 <  1.00 GiB   2.00 GiB   3.00 GiB     4.00 GiB       0 B       0 B  10.0 GiB\n"
                      "  1    1.00 GiB   1.00 GiB   1.00 GiB     1.00 GiB  1.00 GiB  1.00 GiB  6.00 GiB\n"),
            std::string::npos)
      << text;
}

// 8 GiB of 10 are 32 cells: what stage 1 does not use up to there is free, and nothing is beyond.
TEST(RenderMemory, DrawsNothingFreeBeyondTheCapacity) {
  Report report = made_by_hand();
  report.memory.capacity = kGib * 8;
  const std::string over = render_memory_text(report);
  EXPECT_NE(over.find("  stage   1 WWWWGGGGOOOOAAAAbbbboooo........         6.00 GiB\n"), std::string::npos)
      << over;
  EXPECT_NE(over.find(". free"), std::string::npos);
  report.memory.capacity = Bytes(0);
  const std::string unknown = render_memory_text(report);
  EXPECT_NE(unknown.find("  stage   1 WWWWGGGGOOOOAAAAbbbboooo                 6.00 GiB\n"),
            std::string::npos)
      << unknown;
  EXPECT_EQ(unknown.find("free"), std::string::npos);
}

std::string picture(const PipelineShape& shape, const char* schedule, const PictureOptions& options) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const ScheduleCosts costs{.stages = {{kSecond, kSecond, kSecond, kSecond}}};
  const Schedule order = generate(*find_schedule(schedule), shape, costs);
  const Schedule drawn = order.flush ? order : unrolled(order, 2);
  const Play times = play(drawn, costs);
  return render_schedule_text(
      {.schedule = order, .drawn = drawn, .play = times, .period = period(order, costs)}, options);
}

// System: one rank, two micro-batches, F 1 s, B 2 s.
// Expectations: F0 B0 F1 B1 without a gap; a column is half the shortest pass.
TEST(RenderSchedule, DrawsPassesAsLongAsTheyLast) {
  EXPECT_EQ(picture({.ranks = 1, .micro_batches = 2}, "1f1b", {}),
            "1f1b   1 stage, 2 micro-batches   F 1 s, B 2 s                 one column = 0.5 s\n"
            "rank 0  0▁0▓▓▓1▁1▓▓▓   live 1\n"
            "        ▁ forward  ▓ backward  · idle                 digit: micro-batch (mod 10)\n"
            "makespan 6 s   ideal 6 s   bubble 0 s = 0.0 % over ideal, 0.0 % of rank time\n");
}

TEST(RenderSchedule, TakesARoundColumnWhenTheWidthIsShort) {
  // 60 s on 20 columns would be 3 s each; the next round time is 5 s.
  const std::string text = picture({.ranks = 1, .micro_batches = 20}, "1f1b", {.width = 20});
  EXPECT_NE(text.find("one column = 5 s\n"), std::string::npos) << text;
}

// The shortest pass takes microseconds, and a column 50 s.
TEST(RenderSchedule, HasAUnitThatFitsTheColumn) {
  const ScheduleCosts costs{.stages = {{5'000, 100'000'000'000, 100'000'000'000, 0}}};
  const Schedule order = generate(*find_schedule("1f1b"), {.ranks = 1, .micro_batches = 5}, costs);
  const Play times = play(order, costs);
  const std::string text = render_schedule_text(
      {.schedule = order, .drawn = order, .play = times, .period = period(order, costs)}, {.width = 50});
  EXPECT_NE(text.find("F 5 us, B 200 s "), std::string::npos) << text;
  EXPECT_NE(text.find("one column = 50 s\n"), std::string::npos) << text;
}

TEST(RenderSchedule, WritesLongTimesInFull) {
  const ScheduleCosts costs{.stages = {{4'999'600'000'000, 4'999'000'000'000, 1'000'000'000, 0}}};
  const Schedule order = generate(*find_schedule("1f1b"), {.ranks = 1, .micro_batches = 1}, costs);
  const Play times = play(order, costs);
  const std::string text = render_schedule_text(
      {.schedule = order, .drawn = order, .play = times, .period = period(order, costs)}, {.width = 50});
  EXPECT_NE(text.find("makespan 10,000 s "), std::string::npos) << text;
}

TEST(RenderSchedule, TellsChunksApartByHeight) {
  const std::string text = picture({.ranks = 2, .micro_batches = 2, .chunks = 2}, "interleaved-1f1b", {});
  EXPECT_NE(text.find("rank 0  0▁1▁0▂1▂"), std::string::npos) << text;
  EXPECT_NE(text.find("▁▂ forward of chunk 0, 1 "), std::string::npos) << text;
}

// System: one rank, two micro-batches of two chunks, the second chunk directly after the first.
TEST(RenderSchedule, TellsBackwardsOfTwoChunksApartByShade) {
  const std::string text = picture({.ranks = 1, .micro_batches = 1, .chunks = 2}, "zb-v", {});
  EXPECT_NE(text.find("rank 0  0▁0▂0▚0╱0▒0░   live 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("▒▚ input gradient "), std::string::npos) << text;
}

// A pair lasts 3 s, 6 columns: the digit of its forward, and that of its backward in the middle.
TEST(RenderSchedule, DrawsAFusedPairAsOneBarWithBothDigits) {
  const std::string text = picture({.ranks = 2, .micro_batches = 4}, "dualpipe", {});
  EXPECT_NE(text.find("3══0══"), std::string::npos) << text;
  EXPECT_NE(text.find("═ fused pair: forward, then backward "), std::string::npos) << text;
  EXPECT_NE(text.find("▁▂ forward going down, up "), std::string::npos) << text;
}

TEST(RenderSchedule, DrawsTwoIterationsOfWhatNeverDrains) {
  const std::string text = picture({.ranks = 2, .micro_batches = 2}, "pipemare", {});
  EXPECT_NE(text.find("an iteration of the steady state 6 s   ideal 6 s   bubble 0 s = 0.0 % over ideal"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("drawn: the first 2 iterations; it drains only when the training ends\n"),
            std::string::npos)
      << text;
}

TEST(RenderSchedule, ColoursOnlyWhenAskedTo) {
  const PipelineShape shape{.ranks = 1, .micro_batches = 1};
  EXPECT_EQ(picture(shape, "1f1b", {}).find('\x1b'), std::string::npos);
  EXPECT_NE(picture(shape, "1f1b", {.color = true}).find("\x1b[34m0▁\x1b[0m\x1b[32m0▓▓▓\x1b[0m"),
            std::string::npos);
}

}  // namespace
}  // namespace stagecraft
