// A simulated iteration as the data of a page: the content of `run --json`, the timeline, prices with their
// provenance, memory over time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/simulate.hpp"
#include "sim/view/page.hpp"

namespace stagecraft {

struct RunViewOptions {
  std::string title;  // "1f1b", "schedule = zb-h1": empty where it is the only one
  std::size_t room = std::size_t{3} * 1024 * 1024;  // bytes of slices; see sim/view/pack.hpp
};

// A JSON object: see docs/reports.md.
[[nodiscard]] std::string run_view(const Scenario& scenario, const Simulation& simulation,
                                   const RunViewOptions& options = {});

struct RunPage {
  PageHead head;
  std::vector<std::string> runs;       // run_view()
  std::vector<std::string> words{};    // sentences that compare several scenarios
  std::vector<std::string> refused{};  // scenarios that cannot run, with reasons
};
// The whole page: one iteration, or several under each other on one axis.
[[nodiscard]] std::string html_page(const RunPage& page);

}  // namespace stagecraft
