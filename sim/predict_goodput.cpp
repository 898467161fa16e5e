#include "sim/predict_goodput.hpp"

namespace stagecraft {

GoodputReport predict_goodput(const Scenario& scenario, const GoodputOptions& /*options*/) {
  Diagnostics diagnostics;
  diagnostics.error({.code = "missing-key",
                     .where = {.file = scenario.source},
                     .path = "failures",
                     .message = "the scenario says nothing of failures",
                     .hint = "failures: {process: {kind: exponential, rate_per_node_day: 0.0038}, policy: "
                             "checkpoint-restart, horizon: 30 days, repeats: 100}"});
  diagnostics.throw_if_errors();
  return {};
}

}  // namespace stagecraft
