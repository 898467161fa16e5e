// Provenance of a number. Every cost has one, and a report shows the share of time by each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stagecraft {

enum class Provenance : std::uint8_t {
  kMeasured,      // timed by our own suite on the device
  kPublished,     // printed by a cited source for this very shape
  kInterpolated,  // between measured or published rows, by the profile's stated rule
  kAnalytic,      // computed by a formula of this program with fitted constants
  kAssumed,       // not measured; the profile gives the reason for it
};

inline constexpr std::array<std::string_view, 5> kProvenanceNames = {"measured", "published", "interpolated",
                                                                     "analytic", "assumed"};
inline constexpr std::size_t kProvenanceCount = kProvenanceNames.size();
// One value per provenance: seconds, shares, spreads.
using ByProvenance = std::array<double, kProvenanceCount>;

[[nodiscard]] constexpr std::string_view name(Provenance provenance) {
  return kProvenanceNames[static_cast<std::size_t>(provenance)];
}

// A constant with its story.
template <class T>
struct Sourced {
  T value{};
  Provenance provenance = Provenance::kAssumed;
  std::string source{};  // a citation, or how it was fitted and on what

  friend bool operator==(const Sourced&, const Sourced&) = default;
};

}  // namespace stagecraft
