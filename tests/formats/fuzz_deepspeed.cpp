// Property: any text is imported or refused, and what is imported is YAML.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/yaml.hpp"
#include "formats/deepspeed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stagecraft;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Diagnostics diagnostics;
  const auto fragment = import_deepspeed(text, "fuzz", {.gpus = 64, .vocab = 50'257}, diagnostics);
  if (fragment.has_value() == diagnostics.has_errors()) std::abort();
  if (!fragment) return 0;
  Diagnostics parsing;
  if (!parse_yaml(to_yaml(*fragment), "fuzz", parsing)) std::abort();
  return 0;
}
