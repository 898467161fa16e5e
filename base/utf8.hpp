// Where UTF-8 characters end: just enough to refuse what is no text and to count columns.
#pragma once

#include <cstddef>
#include <string_view>

namespace stagecraft {

// Bytes of the character at the front of `text`, 1 to 4; 0 when no valid one stands there (overlong forms,
// surrogates and code points beyond U+10FFFF are not valid) or when `text` is empty.   source  RFC 3629,
// section 4.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

// Code points in `text`; a byte that is not valid counts as one.
[[nodiscard]] std::size_t utf8_count(std::string_view text);

// What stands behind the byte order mark that some editors write in front.
[[nodiscard]] std::string_view without_byte_order_mark(std::string_view text);

}  // namespace stagecraft
