#include "tools/command_line/unpack.hpp"

namespace stagecraft {

std::optional<std::string> unpacked(std::optional<std::string> text, const std::string& name,
                                    Diagnostics& diagnostics) {
  if (!text || !text->starts_with("\x1f\x8b")) return text;
  diagnostics.error({.code = "gzip",
                     .where = {name, 0, 0},
                     .message = "is compressed with gzip, and this program was built without zlib",
                     .hint = "gunzip -c FILE | stagecraft … -"});
  return std::nullopt;
}

}  // namespace stagecraft
