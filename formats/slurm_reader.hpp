// The contents of Slurm's topology files, before any conclusions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"

namespace stagecraft {

enum class SlurmKind { kTree, kBlock, kFlat };

// A switch or a block.
struct SlurmGroup {
  std::string name = {};
  std::string children_text = {};  // as written
  std::string nodes_text = {};
  std::vector<std::string> children = {};
  std::vector<std::string> nodes = {};
  SourceLocation where = {};
};

struct SlurmTopology {
  std::string name = {};  // of topology.yaml
  SlurmKind kind = SlurmKind::kTree;
  std::vector<SlurmGroup> groups = {};
  std::vector<std::int64_t> block_sizes = {};
  std::vector<std::string> others = {};  // topologies of the file that are not the cluster's default
  bool link_speeds = false;
  SourceLocation where = {};
};

[[nodiscard]] std::optional<SlurmTopology> read_slurm_conf(std::string_view text, const std::string& name,
                                                           Diagnostics& diagnostics);
[[nodiscard]] std::optional<SlurmTopology> read_slurm_yaml(std::string_view text, const std::string& name,
                                                           Diagnostics& diagnostics);

}  // namespace stagecraft
