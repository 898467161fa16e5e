// libFuzzer entry: no text whatever may crash the reader of Hugging Face configurations, leak an exception,
// or pass without either a model or a message; and what is written for a model is a YAML text that means the
// same one.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <variant>

#include "formats/hf_config.hpp"
#include "models/load_model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  stagecraft::Diagnostics diagnostics;
  stagecraft::Origins origins;
  const auto read = stagecraft::read_hf_config(text, "fuzz.json", diagnostics, &origins);
  if (read.has_value() == diagnostics.has_errors()) std::abort();
  for (const auto& diagnostic : diagnostics.sorted()) (void)stagecraft::render(diagnostic, text);
  if (!read) return 0;
  stagecraft::Diagnostics again;
  const auto root = stagecraft::parse_yaml(stagecraft::to_yaml(read->fragment), "written.yaml", again);
  if (!root) std::abort();
  stagecraft::YamlMap map(root->find("model"), "model", {}, again);
  const stagecraft::ModelSpec model = stagecraft::load_model(map);
  if (again.has_errors() || std::get<stagecraft::TransformerSpec>(model) != read->model) std::abort();
  return 0;
}
