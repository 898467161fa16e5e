// The sets that are scored unless somebody names files (calibrate/validation/), and what is known of their sources.
#pragma once

#include <filesystem>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "tools/validation/published.hpp"

namespace stagecraft {

// Their files, by name: of sets whose times are scored, which may have memory figures as well, and of sets that are
// used for memory alone.
[[nodiscard]] std::vector<std::filesystem::path> published_files(const DataDirectory& data);
[[nodiscard]] std::vector<std::filesystem::path> published_memory_files(const DataDirectory& data);

[[nodiscard]] std::vector<KnownSource> known_sources(const DataDirectory& data, Diagnostics& diagnostics);

}  // namespace stagecraft
