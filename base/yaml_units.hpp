// Why a text is no quantity: what the reader of a mapping says when one of the parsers of base/yaml.hpp
// returns nothing.
#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

enum class QuantityKind { kDuration, kBytes, kBandwidth, kFlopRate };

struct QuantityMistake {
  // One of no-unit, unknown-unit, negative-quantity, quantity-too-large, quantity-too-small and bad-quantity.
  std::string code;
  std::string message;  // "'400' has no unit"
  std::string hint;     // "400 Gb/s is 50 GB/s; bandwidths are per direction"
};

// `text` is one that the parser of this kind refused.
[[nodiscard]] QuantityMistake explain_bad_quantity(QuantityKind kind, std::string_view text);

}  // namespace stagecraft
