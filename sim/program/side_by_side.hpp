// Programs that run at the same time over the same links, as one program.
#pragma once

#include <string>

#include "sim/program/program.hpp"

namespace stagecraft {

// Puts `other` after the resources, tasks and ranks of `program`, whose own ids stay. Labels of `other` are
// named "NAME: …" from then on.
//
//   returns   the resources that it has now, as a loop from time 0 for whoever wants it to go round
//   requires  the same links in both, and no changes of links in `other`.
Loop put_beside(Program& program, const Program& other, const std::string& name);

}  // namespace stagecraft
