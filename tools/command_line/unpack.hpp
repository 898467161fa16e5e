// Files that people give to importers may be compressed with gzip: `log.txt.gz` is read as `log.txt`.
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.hpp"

namespace stagecraft {

// The text itself unless its first two bytes are gzip's; nullopt where there is none. Damaged or cut off,
// larger than kMaxYamlFileBytes when unpacked, and compressed in a program that was built without zlib:
// reported at `name`, nullopt.
[[nodiscard]] std::optional<std::string> unpacked(std::optional<std::string> text, const std::string& name,
                                                  Diagnostics& diagnostics);

}  // namespace stagecraft
