// Configurations of DeepSpeed (JSON) and GPT-NeoX (YAML) as scenarios.
//
// DeepSpeed's holds no model: its settings of memory, batch and overlap become a part of a scenario, and the
// rest is listed as missing. "auto" is left to the trainer, so it is missing too. GPT-NeoX's is DeepSpeed's
// with a model and the degrees of parallelism. It gives a whole scenario once the numbers of GPUs and tokens
// are known.
//
//   refused   templates with Jinja marks, offloading to NVMe, batch sizes that do not multiply, layers other
//             than plain attention, experts of GPT-NeoX.
//   warnings  options that change time or memory and are not modelled, options that no table knows.
//   source    DeepSpeed documentation, configuration JSON; EleutherAI/gpt-neox @ea7aefd configs/.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"
#include "formats/fragment.hpp"
#include "formats/import_entries.hpp"

namespace stagecraft {

// The text decides which of the two formats it is.
[[nodiscard]] std::optional<Fragment> import_deepspeed(std::string_view text, const std::string& name,
                                                       const ImportRequest& request,
                                                       Diagnostics& diagnostics);

}  // namespace stagecraft
