// The parts of a breakdown as the families whose errors go together (calibrate/profile/residuals.hpp).
#pragma once

#include <array>

#include "base/units.hpp"
#include "calibrate/profile/residuals.hpp"
#include "sim/lower/category.hpp"

namespace stagecraft {

[[nodiscard]] OpFamily family_of(Category category);

// Shares of the sum; all zero of an empty breakdown.
[[nodiscard]] FamilyShares family_shares(const std::array<Duration, kCategoryCount>& breakdown);

}  // namespace stagecraft
