// A job of Megatron-LM as a scenario.
//
// Resolved values of a dump are used unchanged. Missing options of an argv get the defaults of Megatron-LM at
// 000c4ac (2025), or of 2021 where an option of that time is used; the closing comment lists each.
//
//   requires  the number of GPUs: world_size, nnodes x nproc_per_node, or the request's.
//   errors    what is missing or contradicts itself, other kinds of models by name, shell variables that
//             nobody defined in options that matter, fewer GPUs than tensor x context x pipeline.
//   warnings  assumptions about the machine, names of the past, options that change time or memory and are
//             not modelled, options that no table knows.
//   source    NVIDIA/Megatron-LM @000c4ac megatron/training/arguments.py (validate_args).
#pragma once

#include <optional>

#include "base/diagnostic.hpp"
#include "formats/fragment.hpp"
#include "formats/import_entries.hpp"
#include "formats/megatron_arguments.hpp"

namespace stagecraft {

[[nodiscard]] std::optional<Fragment> import_megatron(const MegatronArguments& arguments,
                                                      const ImportRequest& request, Diagnostics& diagnostics);

}  // namespace stagecraft
