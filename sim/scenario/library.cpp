#include "sim/scenario/library.hpp"

#include <optional>

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

}  // namespace

const YamlNode* Library::tree(const std::filesystem::path& file, Diagnostics& diagnostics) {
  return find_or_load(trees_, file, diagnostics, load_yaml_file);
}

const HardwareProfile* Library::profile(const std::filesystem::path& file, Diagnostics& diagnostics) {
  return find_or_load(profiles_, file, diagnostics, load_profile);
}

}  // namespace stagecraft
