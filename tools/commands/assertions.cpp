#include "tools/commands/assertions.hpp"

#include <ostream>

#include "sim/study/reasons.hpp"

namespace stagecraft {

bool assertions_hold(const Scenario& scenario, const Report& report, std::ostream& err) {
  const std::vector<Diagnostic> missed = missed_assertions(scenario, report);
  for (const Diagnostic& one : missed) err << render(one) << '\n';
  return missed.empty();
}

}  // namespace stagecraft
