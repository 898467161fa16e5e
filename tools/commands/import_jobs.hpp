// `stagecraft import megatron|deepspeed|topology`: the jobs and machines of other programs as scenarios.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/command_line/command_line.hpp"

namespace stagecraft {

inline constexpr std::string_view kNothingImported = "nothing was imported";

// --device, where it is given.
[[nodiscard]] std::optional<std::string> asked_device(const Arguments& arguments);

// One file, `-` for standard input, or the words after `--`: options, with a launcher and its program before
// them or without.
int import_megatron_job(const std::vector<std::string>& words, const Arguments& arguments, Session& session);

// One file, JSON of DeepSpeed or YAML of GPT-NeoX.
int import_deepspeed_job(const std::vector<std::string>& words, const Arguments& arguments, Session& session);

// One file: XML of NCCL, `nvidia-smi topo -m`, or Slurm's topology.
int import_topology_file(const std::vector<std::string>& words, const Arguments& arguments, Session& session);

}  // namespace stagecraft
