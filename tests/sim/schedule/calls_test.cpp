// The published sequences of point-to-point calls, and what they cost against messages that travel by
// themselves.
#include "sim/schedule/calls.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

namespace stagecraft {
namespace {

struct CallFile {
  const char* name;
  const char* kind;
  PipelineShape shape;
  CallStyle style;
};

// A call with nothing to do is written {} there and is none here.
std::vector<std::string> published(const CallFile& file) {
  const std::string path = std::string(STAGECRAFT_SOURCE_DIR "/tests/data/schedules/") + file.name + ".comms";
  std::ifstream in(path);
  EXPECT_TRUE(in.is_open()) << path;
  std::vector<std::string> ranks;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    line = std::regex_replace(line.substr(line.find(": ") + 2), std::regex(R"( ?\{\})"), "");
    line = std::regex_replace(line, std::regex(R"(\{\d+SF\d+\})"), "{send_forward}");
    line = std::regex_replace(line, std::regex(R"(\{\d+RF\d+\})"), "{recv_forward}");
    line = std::regex_replace(line, std::regex(R"(\{\d+SB\d+\})"), "{send_backward}");
    ranks.push_back(std::regex_replace(line, std::regex(R"(\{\d+RB\d+\})"), "{recv_backward}"));
  }
  return ranks;
}

// "0F0 {send_forward} ... {send_forward+recv_backward}", as the files write them.
std::string print_calls(const std::vector<Action>& order, const RankCalls& calls) {
  std::string text;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (const Call& call : calls[i]) {
      std::string words;
      for (const PeerTransfer& transfer : call) {
        words += words.empty() ? "" : "+";
        words +=
            std::string(transfer.send ? "send_" : "recv_") + (transfer.gradient ? "backward" : "forward");
      }
      text += (text.empty() ? "{" : " {") + words + "}";
    }
    if (i < order.size()) text += (text.empty() ? "" : " ") + to_string(order[i]);
  }
  return text;
}

TEST(Calls, AreThoseOfMegatronAndDeepSpeed) {
  constexpr CallStyle kBatched = CallStyle::kBatched;
  constexpr CallStyle kOneByOne = CallStyle::kOneByOne;
  const CallFile files[] = {
      {"1f1b_p2_m4_v1", "1f1b", {.ranks = 2, .micro_batches = 4}, kBatched},
      {"1f1b_p4_m2_v1", "1f1b", {.ranks = 4, .micro_batches = 2}, kBatched},
      {"1f1b_p4_m4_v1", "1f1b", {.ranks = 4, .micro_batches = 4}, kBatched},
      {"1f1b_p4_m8_v1", "1f1b", {.ranks = 4, .micro_batches = 8}, kBatched},
      {"1f1b_deepspeed_p2_m4_v1", "1f1b", {.ranks = 2, .micro_batches = 4}, kOneByOne},
      {"1f1b_deepspeed_p4_m2_v1", "1f1b", {.ranks = 4, .micro_batches = 2}, kOneByOne},
      {"1f1b_deepspeed_p4_m8_v1", "1f1b", {.ranks = 4, .micro_batches = 8}, kOneByOne},
      {"interleaved_p2_m4_v2", "interleaved-1f1b", {.ranks = 2, .micro_batches = 4, .chunks = 2}, kBatched},
      {"interleaved_p4_m4_v2", "interleaved-1f1b", {.ranks = 4, .micro_batches = 4, .chunks = 2}, kBatched},
      {"interleaved_p4_m8_v2", "interleaved-1f1b", {.ranks = 4, .micro_batches = 8, .chunks = 2}, kBatched}};
  for (const CallFile& file : files) {
    SCOPED_TRACE(file.name);
    const Schedule schedule = generate(*find_schedule(file.kind), file.shape);
    const auto calls = calls_of(schedule, file.style);
    const std::vector<std::string> theirs = published(file);
    ASSERT_EQ(theirs.size(), calls.size());
    for (std::size_t rank = 0; rank < calls.size(); ++rank)
      EXPECT_EQ(print_calls(schedule.ranks[rank], calls[rank]), theirs[rank]) << "rank " << rank;
  }
}

// System: 1F1B, p = 4, m = 8, F = 1, B = 2, c = 0.25. Expectations: 37 when messages travel by
// themselves, 37.75 in Megatron's batched calls, 41 in DeepSpeed's one by one; 33 for all without a message
// time. In hundredths.
TEST(Calls, CostWhatWasFoundForFourRanksAndEightMicroBatches) {
  const Schedule schedule = generate(*find_schedule("1f1b"), {.ranks = 4, .micro_batches = 8});
  const auto batched = calls_of(schedule, CallStyle::kBatched);
  const auto one_by_one = calls_of(schedule, CallStyle::kOneByOne);
  const ScheduleCosts quarter{.stages = {{100, 100, 100}}, .message = 25};
  EXPECT_EQ(play(schedule, quarter).makespan, 3700);
  EXPECT_EQ(play_calls(schedule, quarter, batched).makespan, 3775);
  EXPECT_EQ(play_calls(schedule, quarter, one_by_one).makespan, 4100);
  const ScheduleCosts none{.stages = {{100, 100, 100}}};
  EXPECT_EQ(play(schedule, none).makespan, 3300);
  EXPECT_EQ(play_calls(schedule, none, batched).makespan, 3300);
  EXPECT_EQ(play_calls(schedule, none, one_by_one).makespan, 3300);
}

TEST(Calls, NeverDeadlockAndNeverBeatMessagesThatTravelByThemselves) {
  const ScheduleCosts costs{.stages = {{7, 5, 6}}, .message = 3};
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 12; ++m) {
      SCOPED_TRACE(testing::Message() << "p=" << p << " m=" << m);
      const Schedule schedule = generate(*find_schedule("1f1b"), {.ranks = p, .micro_batches = m});
      for (const CallStyle style : {CallStyle::kBatched, CallStyle::kOneByOne})
        EXPECT_GE(play_calls(schedule, costs, calls_of(schedule, style)).makespan,
                  play(schedule, costs).makespan);
      for (int v = 2; v <= 3 && p > 1 && m % p == 0; ++v) {
        const Schedule chunked =
            generate(*find_schedule("interleaved-1f1b"), {.ranks = p, .micro_batches = m, .chunks = v});
        EXPECT_GE(play_calls(chunked, costs, calls_of(chunked, CallStyle::kBatched)).makespan,
                  play(chunked, costs).makespan);
      }
    }
  }
}

TEST(Calls, AreRefusedByNameWhereTheyAreNotKnown) {
  const Schedule zb_h1 = generate(*find_schedule("zb-h1"), {.ranks = 2, .micro_batches = 4});
  EXPECT_EQ(refuse_calls(zb_h1, CallStyle::kBatched)->message, "batched calls of zb-h1 are not known");
  const Schedule grouped =
      generate(*find_schedule("interleaved-1f1b"), {.ranks = 2, .micro_batches = 4, .chunks = 2, .group = 4});
  EXPECT_EQ(refuse_calls(grouped, CallStyle::kBatched)->message,
            "batched calls of interleaved-1f1b in groups of 4 are not known, only in groups of its 2 ranks");
}

// Two ranks, F 1, B 2, c 1. Rank 0 sends at 1-2 and 3-4, rank 1 at 5-6 and 9-10; rank 0 ends with B1 at
// 10-12.
TEST(WaitingSenders, StandStillWhileTheirMessageIsUnderWay) {
  const Schedule schedule = generate(*find_schedule("1f1b"), {.ranks = 2, .micro_batches = 2});
  EXPECT_EQ(play(schedule, {.message = 1}).makespan, 11);
  EXPECT_EQ(play_waiting_senders(schedule, {.message = 1}).makespan, 12);
}

}  // namespace
}  // namespace stagecraft
