// libFuzzer entry: no text whatever may crash the YAML reader, leak an exception, or pass without either a
// tree or a message. Built with clang and -fsanitize=fuzzer,address,undefined.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/yaml.hpp"

namespace {

// Reads every entry in every way there is, as a loader with all sorts of keys would.
void walk(const stagecraft::YamlNode& node, stagecraft::Diagnostics& diagnostics) {
  for (const auto& item : node.items) walk(item, diagnostics);
  if (node.kind != stagecraft::YamlNode::Kind::kMap) return;
  stagecraft::Origins origins;
  stagecraft::YamlMap map(&node, "", node.where, diagnostics, &origins);
  for (const auto& entry : node.entries) {
    (void)map.integer(entry.key, {.min = 1, .max = 64, .fallback = 1});
    (void)map.number(entry.key);
    (void)map.boolean(entry.key);
    (void)map.text(entry.key);
    (void)map.duration(entry.key);
    (void)map.bytes(entry.key);
    (void)map.bandwidth(entry.key);
    (void)map.flop_rate(entry.key);
    (void)map.integers(entry.key);
    (void)map.durations(entry.key);
    (void)map.map(entry.key);
    walk(entry.value, diagnostics);
  }
  map.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  stagecraft::Diagnostics diagnostics;
  auto root = stagecraft::parse_yaml(text, "fuzz.yaml", diagnostics);
  if (root.has_value() == diagnostics.has_errors()) std::abort();
  if (root) {
    walk(*root, diagnostics);
    stagecraft::apply_override(*root, std::string(text.substr(0, text.find('\n'))), diagnostics);
  }
  for (const auto& diagnostic : diagnostics.sorted()) (void)stagecraft::render(diagnostic, text);
  (void)stagecraft::render_json(diagnostics.items());
  return 0;
}
