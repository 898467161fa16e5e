// A profile as the file that load_profile() reads (format: calibrate/profile/README.md).
#pragma once

#include <string>
#include <vector>

#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

// Comments of the file beside the values.
struct ProfileRemarks {
  std::string heading;  // one line on top
  Provenance table = Provenance::kPublished;
  std::vector<std::string> gemm_rows;  // a comment beside each row; empty: none
  std::vector<std::string> fp8_rows;   // the same for gemm.fp8_table
};

// Bare numbers read back to the same bits, rates to ten digits, durations and bytes exactly; rows of
// collectives of one story are kept together. One story holds for all of a table, so all rows of
// `profile.gemm` must be of `remarks.table`.
[[nodiscard]] std::string write_profile(const HardwareProfile& profile, const ProfileRemarks& remarks);

// The rows of one story as they stand under `collectives:`.
[[nodiscard]] std::string collective_table(const std::vector<CollectiveFit>& fits);

// The section `collective_points`: the points of the fits that have any; "" without.
[[nodiscard]] std::string collective_points_section(const std::vector<CollectiveFit>& fits);

// The section `residuals:`, the last of a file.
[[nodiscard]] std::string residual_section(const ResidualModel& residuals);

}  // namespace stagecraft
