// What fuzzers of machines and fabrics share.
//
// Property: any text is imported or refused, and what is imported is YAML.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/yaml.hpp"
#include "formats/input_text.hpp"
#include "formats/machine_fragment.hpp"

namespace stagecraft {

// `import`: import_nccl_topology or another of its signature.
template <class Import>
int fuzz_machine_import(const std::uint8_t* data, std::size_t size, const Import& import) {
  Diagnostics diagnostics;
  const auto text =
      checked_text(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz", diagnostics);
  if (!text) return 0;
  const auto fragment = import(*text, "fuzz", {.link = Bandwidth(50e9)}, diagnostics);
  if (fragment.has_value() == diagnostics.has_errors()) std::abort();
  if (!fragment) return 0;
  Diagnostics parsing;
  if (!parse_yaml(to_yaml(*fragment), "fuzz", parsing)) std::abort();
  return 0;
}

}  // namespace stagecraft
