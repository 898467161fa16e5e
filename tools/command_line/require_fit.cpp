#include "tools/command_line/require_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "base/check.hpp"
#include "base/text.hpp"

namespace stagecraft {
namespace {

constexpr const char* kElsewhere =
    "`stagecraft memory` prices other changes, `stagecraft search` looks for plans that fit";

std::string shortage_of(const MemoryLedger& memory) {
  const StageMemory& stage = memory.heaviest();
  if (verdict_of(stage.peak(), memory.capacity) != Verdict::kOutOfMemory) return ": " + memory.shortage();
  const MemoryClass largest =
      *std::ranges::max_element(kMemoryClasses, {}, [&](MemoryClass kind) { return stage.of(kind); });
  return fmt::format(" on stage {}: {} of {}, of which {} {}", stage.stage, human(stage.peak()),
                     human(memory.capacity), name_of(largest), human(stage.of(largest)));
}

std::string hint_of(const std::vector<WhatIf>& what_ifs) {
  if (what_ifs.empty()) return kElsewhere;
  const WhatIf& best = what_ifs.front();
  const std::string change = join(best.change, " --set ");
  if (best.verdict != Verdict::kOutOfMemory)
    return fmt::format("--set {}: {}, {} an iteration; `stagecraft memory` prices other changes", change,
                       human(best.peak), human(best.iteration_time));
  return fmt::format("--set {} alone leaves {}; {}", change, human(best.peak), kElsewhere);
}

}  // namespace

void say_shortage(const MemoryLedger& memory, const std::vector<WhatIf>& what_ifs, Session& session) {
  SC_CHECK(memory.verdict() == Verdict::kOutOfMemory, "something is short");
  session.err << fmt::format("verdict: out-of-memory{}\n  hint: {}\n", shortage_of(memory),
                             hint_of(what_ifs));
}

void say_unchecked(Bytes capacity, const Arguments& arguments, Session& session) {
  if (!arguments.has("require-fit") || arguments.has("quiet") || capacity > Bytes(0)) return;
  session.err
      << "note: --require-fit checked nothing: no capacity is given; a cluster or a `profile` has one\n";
}

}  // namespace stagecraft
