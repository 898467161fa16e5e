// --require-fit of run and memory: the largest parts of a job that does not fit, and changes that make it
// fit.
#pragma once

#include <vector>

#include "sim/explain/memory_what_ifs.hpp"
#include "sim/lower/memory_ledger.hpp"
#include "tools/command_line/command_line.hpp"

namespace stagecraft {

// Prints on standard error the shortage and the first of `what_ifs`, which are memory_what_ifs() of the same
// job. requires a ledger whose verdict is kOutOfMemory.
void say_shortage(const MemoryLedger& memory, const std::vector<WhatIf>& what_ifs, Session& session);

// With --require-fit, says on standard error where the capacity is not known: then nothing was required.
void say_unchecked(Bytes capacity, const Arguments& arguments, Session& session);

}  // namespace stagecraft
