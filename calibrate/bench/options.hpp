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
  std::optional<int> device = {};                        // empty: 0, or that of the process in a job
  std::string id_file;                                   // not empty: this process is one of a job (job.hpp)
  std::optional<int> rank = {}, ranks = {}, nodes = {};  // empty: as the launcher says
  int restarts = 0;  // how often the program has restarted itself; not for people
};

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws UsageError, saying what was expected.
[[nodiscard]] CalibrateOptions parse_options(const std::vector<std::string>& arguments);
[[nodiscard]] std::string usage();

}  // namespace stagecraft
