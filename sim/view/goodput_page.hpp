// Weeks under failures as a page: what is left, where the time goes, what happened when in the first repeat,
// which causes and inputs count; several variants under each other.
#pragma once

#include <string>
#include <vector>

#include "sim/report/goodput_report.hpp"

namespace stagecraft {

struct GoodputPage {
  std::string title;
  std::string command, version;
  std::vector<GoodputReport> reports;  // a diary where one was asked for
  std::vector<std::string> names{};    // of the reports, where they are several
  std::vector<std::string> refused{};  // variants that cannot run: which, and why
};
[[nodiscard]] std::string html_page(const GoodputPage& page);

}  // namespace stagecraft
