#include "sim/scenario/library.hpp"

#include <optional>
#include <string>

#include "base/text_file.hpp"
#include "sim/goodput/trace_file.hpp"

namespace stagecraft {

namespace {

template <class T, class Load>
const T* find_or_load(std::map<std::string, T>& kept, const std::filesystem::path& file,
                      Diagnostics& diagnostics, Load load) {
  const std::string key = file.string();
  if (const auto known = kept.find(key); known != kept.end()) return &known->second;
  std::optional<T> value = load(file, diagnostics);
  if (!value) return nullptr;
  return &kept.insert_or_assign(key, *std::move(value)).first->second;
}

std::optional<Trace> load_trace_file(const std::filesystem::path& file, Diagnostics& diagnostics) {
  const std::optional<std::string> text = load_text_file(file, diagnostics);
  return text ? parse_trace(*text, file.string(), diagnostics) : std::nullopt;
}

}  // namespace

const YamlNode* Library::tree(const std::filesystem::path& file, Diagnostics& diagnostics) {
  return find_or_load(trees_, file, diagnostics, load_yaml_file);
}

const HardwareProfile* Library::profile(const std::filesystem::path& file, Diagnostics& diagnostics) {
  return find_or_load(profiles_, file, diagnostics, load_profile);
}

const Trace* Library::trace(const std::filesystem::path& file, Diagnostics& diagnostics) {
  return find_or_load(traces_, file, diagnostics, load_trace_file);
}

}  // namespace stagecraft
