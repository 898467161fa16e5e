// Property: any text is imported or refused, and what is imported is YAML.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/yaml.hpp"
#include "formats/megatron.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stagecraft;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Diagnostics diagnostics;
  const auto arguments = read_megatron_text(text, "fuzz", {{"TP", "8"}}, diagnostics);
  if (!arguments) return diagnostics.has_errors() ? 0 : (std::abort(), 1);
  const auto fragment = import_megatron(*arguments, {.gpus = 64, .vocab = 50'257}, diagnostics);
  if (fragment.has_value() == diagnostics.has_errors()) std::abort();
  if (!fragment) return 0;
  Diagnostics parsing;
  if (!parse_yaml(to_yaml(*fragment), "fuzz", parsing)) std::abort();
  return 0;
}
