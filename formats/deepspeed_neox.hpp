// A configuration of GPT-NeoX as a scenario.
#pragma once

#include <optional>

#include "base/diagnostic.hpp"
#include "formats/deepspeed_reader.hpp"
#include "formats/fragment.hpp"
#include "formats/import_entries.hpp"

namespace stagecraft {

// `diagnostics`: the reader's.
[[nodiscard]] std::optional<Fragment> import_neox(SettingsReader& reader, const ImportRequest& request,
                                                  Diagnostics& diagnostics);

}  // namespace stagecraft
