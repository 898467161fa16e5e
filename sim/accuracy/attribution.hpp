// Attributes the errors of a set to families of operations.
//
//   model     (measured - predicted) / predicted = sum over families of delta_f x_f, x_f the family's share
//             of the predicted time: delta_f is how much longer the family really takes than predicted.
//   fit       ridge: delta_f is normal around 0 with kPriorDelta, the rows around the model with their own
//             spread, found by repeating; rows far off count by their amount (Huber, as in calibrate/fit).
//   errors    standard errors are those of the posterior: where the rows say nothing of a family, the
//             prior's.
#pragma once

#include <string>
#include <vector>

namespace stagecraft {

inline constexpr double kPriorDelta = 0.3;

struct AttributionRow {
  std::vector<double> shares;  // a family each
  double excess = 0;           // measured / predicted - 1
};

struct FamilyBlame {
  double mean_share = 0;      // share of the predicted time
  double delta = 0;           // relative extra time of the family over its prediction
  double standard_error = 0;  // standard error of delta
  // Contribution of this family to the rows' mean absolute excess: mean |delta x_f|.
  double contribution = 0;
};

struct Attribution {
  std::vector<FamilyBlame> families;  // families in the order of their shares
  double explained = 0;               // fraction of the squared excess that the model explains
  double left = 0;                    // root mean square of the remainder
};

// Empty of fewer than three rows.
[[nodiscard]] Attribution attribute_errors(const std::vector<AttributionRow>& rows);

}  // namespace stagecraft
