#include "tools/reference/key_help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace stagecraft {
namespace {

constexpr std::array<KeyHelp, 1> kScenarioHelp{KeyHelp{"stagecraft", "the schema: 1"}};
constexpr std::array<KeyHelp, 1> kSweepHelp{KeyHelp{"stagecraft", "the schema: 1"}};

bool is_mapping_alone(const ReferenceKey& key) {
  return std::ranges::all_of(key.forms, [](const KeyForm& form) {
    return form.kind == KeyForm::Kind::kMap || form.kind == KeyForm::Kind::kMaps;
  });
}

}  // namespace

std::span<const KeyHelp> key_help(DocumentKind kind) {
  if (kind == DocumentKind::kSweep) return kSweepHelp;
  return kScenarioHelp;
}

const KeyHelp* find_help(DocumentKind kind, std::string_view path) {
  const std::span<const KeyHelp> all = key_help(kind);
  const auto found = std::ranges::find(all, path, &KeyHelp::path);
  return found == all.end() ? nullptr : &*found;
}

std::string fallback_of(DocumentKind kind, const ReferenceKey& key) {
  const KeyHelp* help = find_help(kind, key.path);
  if (help != nullptr && !help->fallback.empty()) return std::string(help->fallback);
  if (key.required || is_mapping_alone(key)) return "";
  std::set<std::string> all;
  std::vector<std::string> each;
  for (const auto& [choice, fallbacks] : key.fallbacks) {
    for (const std::string& fallback : fallbacks) {
      if (fallback.empty()) continue;
      all.insert(fallback);
      each.push_back(fmt::format("`{}` ({})", fallback, choice));
    }
  }
  if (all.size() == 1) return "`" + *all.begin() + "`";
  return join(each, ", ");
}

std::vector<std::string> gaps_of(DocumentKind kind, const Reference& reference) {
  std::vector<std::string> gaps;
  for (const ReferenceKey& key : reference.keys) {
    if (find_help(kind, key.path) == nullptr) gaps.push_back(key.path + ": no word of help");
    if (!key.required && !is_mapping_alone(key) && fallback_of(kind, key).empty())
      gaps.push_back(key.path + ": nobody says what holds without it");
  }
  for (const KeyHelp& help : key_help(kind))
    if (reference.find(help.path) == nullptr)
      gaps.push_back(fmt::format("{}: no reader knows it", help.path));
  return gaps;
}

}  // namespace stagecraft
