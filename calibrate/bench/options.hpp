// The command line of stagecraft-calibrate.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace stagecraft {

struct CalibrateOptions {
  std::string out = "samples.jsonl";
  std::optional<double> budget_seconds = 480;  // empty: no limit
  std::vector<std::string> families;           // empty: all
  std::string shapes;                          // file of wanted points; empty: the default list
  bool list = false;
  bool check = false;
  bool quick = false;
  bool help = false;
  int device = 0;
  int restarts = 0;  // how often the program has restarted itself; not for people
};

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws UsageError, saying what was expected.
[[nodiscard]] CalibrateOptions parse_options(const std::vector<std::string>& arguments);
[[nodiscard]] std::string usage();

}  // namespace stagecraft
