// Goodput as a page: throughput, buckets, the events of the first repeat, causes and inputs; several variants
// below each other.
#pragma once

#include <string>
#include <vector>

#include "sim/report/goodput_report.hpp"
#include "sim/view/page.hpp"

namespace stagecraft {

struct GoodputPage {
  PageHead head;
  std::vector<GoodputReport> reports;  // with a timeline where requested
  std::vector<std::string> names{};    // names of several reports
  std::vector<std::string> refused{};  // variants that cannot run: which, and why
};
[[nodiscard]] std::string html_page(const GoodputPage& page);

}  // namespace stagecraft
