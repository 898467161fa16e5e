// Published measurements, and the scenarios that they are measurements of.
//
// A file (format stagecraft.published/1) holds what all its rows share in the keys of the scenario schema,
// named models, and rows whose keys are scenario keys without their section. Nothing but the row and the
// file's shared part goes into a scenario, and what is known of its source (known_sources.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/units.hpp"
#include "base/yaml.hpp"
#include "tools/validation/known_sources.hpp"

namespace stagecraft {

struct PublishedRow {
  std::string id;
  YamlNode scenario;  // ready for read_scenario
  std::optional<double> iteration_seconds;
  std::optional<double> tokens_per_s_per_gpu;
  std::optional<double> memory_gib;         // of the set's `memory_rank`
  std::optional<bool> out_of_memory;        // did the run fail for want of memory
  std::string skip;                         // why the row cannot be run, as its source says
  std::string model;                        // as the row names it
  std::optional<std::int64_t> gpus;         // as the row counts them
  std::map<std::string, std::string> keys;  // scenario keys of the row with their values, as text
  std::map<std::string, double> peers;      // other tools' seconds per iteration
};

// Which GPU the memory figures of a set are of.
enum class MemoryRank : std::uint8_t {
  kFullest,  // no `memory_rank`
  kFirst,    // of the first pipeline rank, as MLPerf's logs say
  kLast,     // of the last one, as Megatron-LM logs it
};

struct PublishedSet {
  std::string name;
  std::string title, url;
  std::string origin;                         // repository and commit, or paper
  std::string licence;                        // empty: a paper's table, or not stated
  std::vector<std::string> assumed;           // scenario keys that the source does not print
  std::vector<std::string> known;             // what known_sources.hpp added, and why
  std::optional<MemoryFigure> memory_figure;  // `memory_figure:`; absent where no memory was measured
  MemoryRank memory_rank = MemoryRank::kFullest;
  std::filesystem::path folder;  // of the file: relative paths of its rows begin there
  std::vector<PublishedRow> rows;
};

[[nodiscard]] std::optional<PublishedSet> load_published(const std::filesystem::path& file,
                                                         const std::vector<KnownSource>& sources,
                                                         Diagnostics& diagnostics);

}  // namespace stagecraft
