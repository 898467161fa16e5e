// Between the two forms of nccl-tests' output and the run that they tell of. Not for others.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/diagnostic.hpp"
#include "calibrate/fit/nccl_tests.hpp"

namespace stagecraft::detail {

// Limits of a plausible measurement: a buffer within some memory, a call of a nanosecond to eleven days.
inline constexpr std::int64_t kMaxNcclBytes = std::int64_t{1} << 50;
[[nodiscard]] constexpr bool is_nccl_time(double microseconds) {
  return microseconds >= 1e-3 && microseconds <= 1e12;
}

// The ranks that a file lists.
class NcclRanks {
 public:
  // false: this rank was listed before.
  [[nodiscard]] bool add(const std::string& group, std::int64_t rank, const std::string& host);
  // Sets ranks and nodes. The message where they are no run to fit.
  [[nodiscard]] std::optional<std::string> close(NcclRun& run) const;

 private:
  std::set<std::pair<std::string, std::int64_t>> seen_;
  std::map<std::string, int> ranks_;
  std::map<std::string, std::set<std::string>> hosts_;
};

// Size 0 is no row, but the time of a launch.
void add_nccl_row(NcclRun& run, const NcclRow& row);

// NCCL_VERSION as people write it: 22809 is 2.28.9, 2708 (before 2.9) is 2.7.8.
[[nodiscard]] std::string nccl_version_text(std::int64_t version);

// `text` is without a byte-order mark.
[[nodiscard]] std::optional<NcclRun> read_nccl_text(std::string_view text, const std::string& name,
                                                    Diagnostics& diagnostics);
[[nodiscard]] std::optional<NcclRun> read_nccl_json(std::string_view text, const std::string& name,
                                                    Diagnostics& diagnostics);

}  // namespace stagecraft::detail
