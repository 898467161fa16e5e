// Bytes as text that any page may hold (RFC 4648, section 4).
#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace stagecraft
