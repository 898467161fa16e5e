// PyTorch's pipelining CSV, both ways: samples of its forms, and bad ones whose every problem has its place.
#include "sim/schedule/csv.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/schedule/notation.hpp"
#include "tests/file_content.hpp"

namespace stagecraft {
namespace {

std::string sample(const std::string& name) {
  return content_of(STAGECRAFT_SOURCE_DIR "/tests/data/schedules/csv/" + name);
}

OrderFile order_of(const std::string& text) {
  auto parsed = parse_csv(text);
  if (const auto* problems = std::get_if<std::vector<CellProblem>>(&parsed)) {
    ADD_FAILURE() << problems->front().problem.message;
    return {};
  }
  return std::get<OrderFile>(std::move(parsed));
}

std::vector<CellProblem> problems_of(const std::string& text) {
  auto parsed = parse_csv(text);
  if (std::holds_alternative<OrderFile>(parsed)) {
    ADD_FAILURE() << "accepted: " << text;
    return {};
  }
  return std::get<std::vector<CellProblem>>(std::move(parsed));
}

Schedule generated(const char* kind, const PipelineShape& shape) {
  return generate(*find_schedule(kind), shape);
}

TEST(ScheduleCsv, ReadsComputeOnlyAndIgnoresIdleCells) {
  const OrderFile file = order_of(sample("made_1f1b_p2_m3_compute_only.csv"));
  EXPECT_EQ(file.schedule.ranks, generated("1f1b", {.ranks = 2, .micro_batches = 3}).ranks);
  std::vector<int> cells;
  for (const CellPlace& place : file.cells[1]) cells.push_back(place.cell);
  EXPECT_EQ(cells, (std::vector<int>{2, 3, 4, 5, 6, 7}));
}

TEST(ScheduleCsv, AByteOrderMarkIsNoPartOfTheFirstCell) {
  const std::string text = sample("made_1f1b_p2_m3_compute_only.csv");
  EXPECT_EQ(order_of("\xef\xbb\xbf" + text).schedule.ranks, order_of(text).schedule.ranks);
}

TEST(ScheduleCsv, ReadsAndWritesTheFormWithCommunication) {
  const std::string text = sample("made_1f1b_p2_m2_compute_comms.csv");
  const OrderFile file = order_of(text);
  EXPECT_EQ(file.schedule.ranks, generated("1f1b", {.ranks = 2, .micro_batches = 2}).ranks);
  EXPECT_EQ(std::get<std::string>(print_csv(file.schedule, CsvForm::kComputeAndCommunication)),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
            "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
}

TEST(ScheduleCsv, ReadsAndWritesAnOverlappedCell) {
  const std::string text = sample("made_overlap_cell.csv");
  const OrderFile file = order_of(text);
  EXPECT_EQ(file.schedule.shape, (PipelineShape{.ranks = 1, .micro_batches = 2, .chunks = 2}));
  EXPECT_EQ(print_actions(file.schedule.ranks[0]), "0F0 1F0 (0F1;1B0) 0B0 1F1 1B1 0B1");
  EXPECT_EQ(std::get<std::string>(print_csv(file.schedule, CsvForm::kComputeOnly)), text);
}

TEST(ScheduleCsv, ReadsTorchtitansCustomSchedule) {
  const std::string text = sample("torchtitan_custom_schedule.csv");
  const OrderFile file = order_of(text);
  EXPECT_EQ(file.schedule.shape, (PipelineShape{.ranks = 2, .micro_batches = 8, .chunks = 2}));
  EXPECT_EQ(file.schedule.placement, Placement::kLoop);
  for (const std::vector<Action>& order : file.schedule.ranks) {
    EXPECT_EQ(order.size(), 48u);
    for (const Pass pass : {Pass::kForward, Pass::kInputGradient, Pass::kWeightGradient})
      EXPECT_EQ(std::ranges::count(order, pass, &Action::pass), 16);
  }
  EXPECT_EQ(std::get<std::string>(print_csv(file.schedule, CsvForm::kComputeOnly)), text);
}

TEST(ScheduleCsv, SaysWhereADeadlockBegins) {
  const auto problems = problems_of(sample("made_bad_deadlock.csv"));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0],
            (CellProblem{
                .line = 2,
                .cell = 1,
                .column = 1,
                .problem = {.message = "rank 1, cell 1 (1F1): blocked: 1F1 waits for 0F1, which comes after "
                                       "0B0 on rank 0, which waits for 1B0, which comes after 1F1 on rank 1",
                            .hint = "run 0F1 before 0B0 on rank 0 to break this ring"}}));
}

TEST(ScheduleCsv, SaysWhichForwardHasNoBackward) {
  const auto problems = problems_of(sample("made_bad_missing_backward.csv"));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(
      problems[0],
      (CellProblem{.line = 1,
                   .cell = 2,
                   .column = 5,
                   .problem = {.message = "rank 0, cell 2 (0F1): micro-batch 1 on stage 0 has no backward",
                               .hint = "add 0B1, or 0I1 and 0W1"}}));
}

TEST(ScheduleCsv, ReportsEveryCellThatIsNoAction) {
  const auto problems = problems_of("0F0x,0B0\nF0_s1,\"1B0\",1R0\n");
  ASSERT_EQ(problems.size(), 4u);
  EXPECT_EQ(problems[0].problem.message, "rank 0, cell 1: '0F0x' is no action");
  EXPECT_EQ(
      problems[1].problem,
      (ScheduleProblem{
          .message = "rank 1, cell 1: 'F0_s1' is an action as PyTorch 2.4 wrote it, with the stage behind",
          .hint = "write 1F0"}));
  EXPECT_EQ(problems[2].cell, 2);
  EXPECT_EQ(problems[3].line, 2);
  for (const char* cell :
       {"0SEND_F", "SEND_F0", "UNSHARD", "0RESHARD1", "(0F0;0B0)", "(0F0)OVERLAP_F_B", "0 F0", "-1F0"})
    EXPECT_EQ(problems_of(cell).size(), 1u) << cell;
}

TEST(ScheduleCsv, RefusesAStageOnTwoRanksAndStagesInNoKnownPlace) {
  EXPECT_EQ(problems_of("0F0,0B0\n0F1,0B1\n").front().problem.message,
            "rank 1, cell 1 (0F1): stage 0 runs on rank 0 as well");
  EXPECT_EQ(problems_of("0F0,1F0,1B0,0B0\n2F0,3F0,3B0,2B0\n").front().problem.message,
            "the stages lie neither on a loop nor on a V or wave");
  EXPECT_EQ(problems_of("0F0,0B0\n1F0,1B0,2F0,2B0\n").front().problem.message, "3 stages on 2 ranks");
  EXPECT_EQ(problems_of("0F0,0B0\n2F0,2B0\n").front().problem.message,
            "rank 1, cell 1 (2F0): no rank has an action of stage 1");
  EXPECT_EQ(problems_of("").front().problem.message, "no action is written here");
}

TEST(ScheduleCsv, NamesTwentyStagesOnTwoRanksAtMost) {
  std::string row;
  for (int stage = 0; stage < 30; ++stage)
    row += std::to_string(stage) + "F0," + std::to_string(stage) + "B0,";
  EXPECT_EQ(problems_of(row + "\n" + row + "\n").size(), 20u);
}

TEST(ScheduleCsv, ChecksThatMessagesHaveTwoEndsBesideTheirPasses) {
  const std::string good = "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n";
  EXPECT_EQ(order_of(good).schedule.ranks.size(), 2u);
  const auto unsent = problems_of("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  ASSERT_EQ(unsent.size(), 1u);
  EXPECT_EQ(unsent[0].problem.message, "rank 1, cell 1 (1RECV_F0): nobody sends it");
  const auto early = problems_of("0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  ASSERT_EQ(early.size(), 1u);
  EXPECT_EQ(early[0].problem.message, "rank 0, cell 1 (0SEND_F0): sends what no pass before it makes");
}

// Property: what is written is read back, in either form, for every schedule that can be written.
TEST(ScheduleCsv, ReadsBackWhatItWrites) {
  int written = 0;
  for (const ScheduleKind& kind : schedule_kinds()) {
    SCOPED_TRACE(kind.name);
    const PipelineShape shape{.ranks = 4, .micro_batches = 8, .chunks = kind.chunked ? 2 : 1};
    const Schedule schedule = generate(kind, shape);
    for (const CsvForm form : {CsvForm::kComputeOnly, CsvForm::kComputeAndCommunication}) {
      const auto text = print_csv(schedule, form);
      if (std::holds_alternative<ScheduleProblem>(text)) continue;
      const OrderFile file = order_of(std::get<std::string>(text));
      EXPECT_EQ(file.schedule.ranks, schedule.ranks);
      EXPECT_EQ(file.schedule.shape.chunks, schedule.shape.chunks);
      EXPECT_EQ(check(file.schedule), std::vector<ScheduleProblem>{});
      ++written;
    }
  }
  EXPECT_GE(written, 20);
}

TEST(ScheduleCsv, RefusesToWriteWhatAFileCannotSay) {
  for (const char* kind : {"dualpipe", "chimera", "varuna", "pipedream-2bw"}) {
    const auto text = print_csv(generated(kind, {.ranks = 4, .micro_batches = 8}), CsvForm::kComputeOnly);
    EXPECT_TRUE(std::holds_alternative<ScheduleProblem>(text)) << kind;
  }
}

// The first character of a cell's word, whatever blanks and empty cells stand in front of it.
TEST(ScheduleCsv, GivesTheColumnOfACell) {
  std::vector<std::pair<int, int>> places;
  for (const CellProblem& problem : problems_of("0F0, bad,,0B0\n,\t1F0,worse\n"))
    places.emplace_back(problem.line, problem.column);
  EXPECT_EQ(places, (std::vector<std::pair<int, int>>{{1, 6}, {2, 7}}));
  EXPECT_EQ(problems_of("0F0,0B0\n0F0,0B0\n").front().column, 1);
}

TEST(ScheduleCsv, FindsTheForwardThatPassesAMemoryLimit) {
  const OrderFile file = order_of("0F0,0F1,0F2,0B0,0B1,0B2\n");
  EXPECT_TRUE(over_limit(file, 3).empty());
  EXPECT_EQ(
      over_limit(file, 1),
      (std::vector<CellProblem>{
          {.line = 1,
           .cell = 2,
           .column = 5,
           .problem = {
               .message = "rank 0, cell 2 (0F1): the rank holds 3 chunk activations at most, the limit is 1",
               .hint = "run a backward in front of this pass"}}}));
}

// Both passes of a pair hold what they hold until it ends, whichever is written first.
TEST(ScheduleCsv, CountsBothPassesOfAPairAgainstAMemoryLimit) {
  for (const char* pair : {"(0B0;0F2)OVERLAP_F_B", "(0F2;0B0)OVERLAP_F_B"}) {
    const OrderFile file = order_of(std::string("0F0,0F1,") + pair + ",0B1,0B2\n");
    const std::vector<CellProblem> problems = over_limit(file, 2);
    ASSERT_EQ(problems.size(), 1u) << pair;
    EXPECT_EQ(problems.front().cell, 3) << pair;
    EXPECT_TRUE(over_limit(file, 3).empty()) << pair;
  }
}

TEST(ScheduleCsv, RefusesNumbersThatNoOrderHas) {
  const auto problems = problems_of("0F2147483647,0B0\n");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].problem.message, "rank 0, cell 1: '0F2147483647' is beyond 1000000");
}

}  // namespace
}  // namespace stagecraft
