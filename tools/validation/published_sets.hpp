// The sets that are scored unless somebody names files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "tools/validation/published.hpp"

namespace stagecraft {

// Files of a folder below the data directory, by name; `sources` is none.
[[nodiscard]] std::vector<std::filesystem::path> published_files(const DataDirectory& data,
                                                                 const std::string& folder);

[[nodiscard]] std::vector<KnownSource> known_sources(const DataDirectory& data, Diagnostics& diagnostics);

}  // namespace stagecraft
