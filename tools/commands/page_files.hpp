// Pages of --html: the answer of a command, as one file to look at.
//
//   throws ScenarioError where the file cannot be written, or is there already and --force is not given.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulate.hpp"
#include "tools/command_line/command_line.hpp"
#include "tools/tables/compare_table.hpp"
#include "tools/tables/goodput_table.hpp"
#include "tools/tables/sweep_sinks.hpp"
#include "tools/validation/score.hpp"

namespace stagecraft {

void write_page(const Arguments& arguments, const Scenario& scenario, const Simulation& simulation);
// Simulates each variant again: a comparison keeps reports, not timelines.
// throws UsageError where there are more than a page can show.
void write_page(const Arguments& arguments, const Comparison& comparison);
void write_page(const Arguments& arguments, const GoodputReport& report);
void write_page(const Arguments& arguments, const GoodputComparison& comparison);
// Sets without a row that could be predicted are left out.
void write_page(const Arguments& arguments, const std::vector<SetScore>& scores);

// Takes the rows of a sweep of this name, or where it has none of the first file, and writes the page at the
// end.
[[nodiscard]] std::unique_ptr<RowSink> page_sink(const Arguments& arguments, std::vector<RowColumn> columns,
                                                 const std::string& name);

}  // namespace stagecraft
