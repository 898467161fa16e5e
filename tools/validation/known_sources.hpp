// What is known of published sources beside what a file of their measurements says
// (calibrate/validation/sources.yaml).
//
// Such a file names the nearest machine that a scenario has a name for, and no key that its source does not
// print. The source's other pages often say more: whose fabric it was, which software ran, what a memory figure
// counts. That holds for all rows of a source, in whichever file they stand, so it is written once and with its
// reason, which says so where it rests on rows themselves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

// What a set's memory figures are; figures of different kinds are never compared.
enum class MemoryFigure : std::uint8_t { kAllocated, kReserved, kDevice };
inline constexpr std::string_view kMemoryFigureNames[] = {"allocated", "reserved", "device"};

struct KnownSource {
  std::string source;                              // as `PublishedSet::origin`, with or without its commit
  std::optional<YamlNode> where;                   // only rows whose scenario has these values
  std::optional<YamlNode> instead;                 // scenario keys that take the place of the row's
  std::optional<YamlNode> unsaid;                  // scenario keys of rows that do not say them
  std::optional<MemoryFigure> memory_figure = {};  // of files that do not say it
  std::string why;                                 // for the reader of a score

  [[nodiscard]] bool is_of(const YamlNode& scenario) const;
  // Completes the scenario of a row of it; did that change anything?
  [[nodiscard]] bool complete(YamlNode& scenario) const;
};

[[nodiscard]] std::vector<KnownSource> load_known_sources(const std::filesystem::path& file,
                                                          Diagnostics& diagnostics);

// Those of a set of this origin: "owner/repository @4dcaae51", or an address. Capitals and GitHub's address
// before the name do not matter.
[[nodiscard]] std::vector<KnownSource> known_of(const std::vector<KnownSource>& sources,
                                                const std::string& origin);

}  // namespace stagecraft
