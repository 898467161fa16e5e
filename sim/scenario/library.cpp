#include "sim/scenario/library.hpp"

#include <optional>
#include <string>

#include "base/hash.hpp"
#include "base/text_file.hpp"
#include "sim/goodput/trace_file.hpp"

namespace stagecraft {

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
  return find_or_load(profiles_, file, diagnostics, parse_profile);
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
