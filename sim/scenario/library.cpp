#include "sim/scenario/library.hpp"

#include <optional>
#include <string>
#include <utility>

#include "base/hash.hpp"
#include "base/text_file.hpp"
#include "sim/goodput/trace_file.hpp"
#include "sim/scenario/load_software.hpp"
#include "sim/scenario/preset.hpp"

namespace stagecraft {
namespace {

// Is the software of a profile installed? A name that is not would stop the one scenario that takes it.
bool finds_software(const DefaultSoftware& software, const std::string& text, const std::string& name,
                    Library& library, Diagnostics& diagnostics) {
  const std::filesystem::path none;
  const PresetPlaces places{.library = library, .folder = none};
  const ErrorWatch watch(diagnostics);
  for (const auto& [key, preset] : {std::pair{"replicated", &software.replicated},
                                    {"sharded", &software.sharded},
                                    {"sharded_gated", &software.sharded_gated},
                                    {"sharded_fp16", &software.sharded_fp16}}) {
    if (preset->empty() || is_path(*preset) || preset_path(*preset, kSoftwarePreset, places)) continue;
    const std::optional<YamlNode> root = parse_yaml(text, name, diagnostics);  // for the place alone
    YamlMap profile(root ? &*root : nullptr, "", {.file = name}, diagnostics);
    YamlMap section = profile.map("software");
    (void)find_preset(section, key, *preset, kSoftwarePreset, places);
  }
  return watch.clean();
}

}  // namespace

template <class T, class Parse>
const T* Library::find_or_load(Shelf<T>& shelf, const std::filesystem::path& file, Diagnostics& diagnostics,
                               Parse parse) {
  const std::string key = file.string();
  if (const auto known = shelf.find(key); known != shelf.end()) {
    asked_.insert(known->second.contents);
    return &known->second.value;
  }
  const std::optional<std::string> text = load_text_file(file, diagnostics);
  if (!text) return nullptr;
  const std::uint64_t contents = StableHash().add(std::string_view(*text)).value();
  asked_.insert(contents);
  std::optional<T> value = parse(*text, place_name(file), diagnostics);
  if (!value) return nullptr;
  return &shelf.insert_or_assign(key, Kept<T>{*std::move(value), contents}).first->second.value;
}

const std::string* Library::text(const std::filesystem::path& file, Diagnostics& diagnostics) {
  return find_or_load(texts_, file, diagnostics,
                      [](const std::string& text, const std::string&, Diagnostics&) {
                        return std::optional<std::string>(text);
                      });
}

const YamlNode* Library::tree(const std::filesystem::path& file, Diagnostics& diagnostics) {
  return find_or_load(trees_, file, diagnostics, parse_yaml);
}

const HardwareProfile* Library::profile(const std::filesystem::path& file, Diagnostics& diagnostics) {
  const auto parse = [this](const std::string& text, const std::string& name, Diagnostics& said) {
    std::optional<HardwareProfile> profile = parse_profile(text, name, said);
    if (profile && !finds_software(profile->software, text, name, *this, said)) profile.reset();
    return profile;
  };
  return find_or_load(profiles_, file, diagnostics, parse);
}

const Trace* Library::trace(const std::filesystem::path& file, Diagnostics& diagnostics) {
  return find_or_load(traces_, file, diagnostics, parse_trace);
}

std::string Library::contents() const {
  StableHash hash;
  for (const std::uint64_t file : asked_) hash.add(file);
  return hash.hex();
}

}  // namespace stagecraft
