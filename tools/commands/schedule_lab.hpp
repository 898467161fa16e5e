// Common parts of `stagecraft schedule`: orders by name or from a file, costs and messages from the command
// line, and the resulting times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/schedule/csv.hpp"
#include "sim/schedule/play.hpp"
#include "sim/schedule/schedule.hpp"
#include "tools/command_line/command_line.hpp"

namespace stagecraft {

[[nodiscard]] std::vector<std::string> schedule_names();

// Each throws UsageError when the command line is wrong, or ScenarioError where several options are.
[[nodiscard]] const ScheduleKind& schedule_kind(const Arguments& arguments);
[[nodiscard]] PipelineShape pipeline_shape(const Arguments& arguments, int default_chunks);
void refuse_more_passes(std::int64_t most, std::int64_t passes);
// Of an order that is drawn or compared: a picture of a million passes helps nobody and costs gigabytes.
void refuse_large(const PipelineShape& shape);
// The costs of one chunk, in nanoseconds. `recomputes`: the order has passes of its own for that, which take
// as long as a forward unless told otherwise; without, --recompute lengthens every backward.
[[nodiscard]] ScheduleCosts schedule_costs(const Arguments& arguments, bool recomputes);
// A fused pair lasts no less than the longer of its passes and no more than both: refuses --fused otherwise.
void check_pairs(const Schedule& schedule, const ScheduleCosts& costs);
// The order that --schedule and the sizes ask for. Refuses what a picture cannot hold.
[[nodiscard]] Schedule named_schedule(const Arguments& arguments);

// Plays `drawn`, which must drain, with messages as --p2p says.
[[nodiscard]] Play timed(const Schedule& drawn, const ScheduleCosts& costs, const Arguments& arguments);
[[nodiscard]] std::vector<std::string> message_ways();
// What --p2p says.
[[nodiscard]] std::string message_way(const Arguments& arguments);

// The order of a file in PyTorch's form. Wrong: reports where, nullopt.
[[nodiscard]] std::optional<OrderFile> read_order_file(const std::string& file, Diagnostics& diagnostics);
void report_problems(const std::string& file, const std::vector<CellProblem>& problems,
                     Diagnostics& diagnostics);
// Reports on standard error with file, row and cell, or as JSON on standard output. Returns kAnswerIsNo, or
// kWrongInput where there is no file to judge.
int refuse_order(const Diagnostics& diagnostics, const Arguments& arguments, Session& session);

// The parts; each gets the words behind its own name.
using Words = std::vector<std::string>;
int schedule_show(const Words& words, const Arguments& arguments, Session& session);
int schedule_check(const Words& words, const Arguments& arguments, Session& session);
int schedule_import(const Words& words, const Arguments& arguments, Session& session);
int schedule_export(const Words& words, const Arguments& arguments, Session& session);
int schedule_compare(const Words& words, const Arguments& arguments, Session& session);
int schedule_search(const Words& words, const Arguments& arguments, Session& session);

}  // namespace stagecraft
