// Slurm's lists of names: gpu[0001-0016,20],login1.
//
//   list   = item {"," item}; item = text with any number of bracket groups, which multiply
//   group  = "[" range {"," range} "]"; range = number or number "-" number; the width of the first number,
//            zeros included, is the width of all
//   source SchedMD/slurm @284c3b9 documentation of topology.conf and hostlists
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

struct HostlistResult {
  std::vector<std::string> names = {};  // in the order of the text
  std::string mistake = {};             // empty, or why the text is no list: "'[' is not closed"
};

// Expands a list to at most `most` names: more is a mistake.
[[nodiscard]] HostlistResult expand_hostlist(std::string_view text, std::size_t most);

}  // namespace stagecraft
