#include "base/key_survey.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace stagecraft {

namespace {

// Keys whose word decides which others count.
constexpr std::array<std::string_view, 5> kDeciding{"kind", "family", "name", "mode", "granularity"};

bool is_index(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
}

// "cluster.nodes.0" -> "cluster.nodes[]"
std::string general(std::string_view path) {
  std::string result;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string_view part = path.substr(0, dot);
    if (is_index(part))
      result += "[]";
    else
      result += (result.empty() ? "" : ".") + std::string(part);
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return result;
}

}  // namespace

SurveyedKey* KeySurvey::find(const std::string& map, std::string_view key) {
  std::string path = general(map);
  if (!path.empty()) {
    const std::string root = path.substr(0, path.find_first_of(".["));
    if (!index_.contains(root)) return nullptr;  // of another file: a profile, the defaults
    path += '.';
  }
  path += is_index(key) ? "<n>" : std::string(key);
  const auto [at, is_new] = index_.emplace(path, entries_.size());
  if (is_new) entries_.push_back({.path = path});
  const auto choice = choices_.find(map);
  return &entries_[at->second].by_choice[choice == choices_.end() ? "" : choice->second];
}

// A mapping whose path ends in a number is an item of a list.
void KeySurvey::enter(const std::string& map) {
  choices_.erase(map);
  const std::size_t item = map.rfind('.');
  if (item == std::string::npos || !is_index(std::string_view(map).substr(item + 1))) return;
  const std::string list = map.substr(0, item);
  const std::size_t key = list.rfind('.');
  if (key == std::string::npos && !index_.contains(list)) return;  // of another document
  if (key == std::string::npos)
    read("", list, {.kind = KeyForm::Kind::kMaps}, "");
  else
    read(list.substr(0, key), list.substr(key + 1), {.kind = KeyForm::Kind::kMaps}, "");
}

void KeySurvey::ask(const std::string& map, std::string_view key) {
  (void)find(map, key);
}

void KeySurvey::read(const std::string& map, std::string_view key, KeyForm form,
                     const std::optional<std::string>& fallback) {
  SurveyedKey* known = find(map, key);
  if (known == nullptr) return;
  if (std::ranges::find(known->forms, form) == known->forms.end()) known->forms.push_back(std::move(form));
  if (fallback)
    known->fallbacks.insert(*fallback);
  else
    known->asked_without_fallback = true;
}

void KeySurvey::choose(const std::string& map, std::string_view key, const std::string& word) {
  if (map.empty() || std::ranges::find(kDeciding, key) == kDeciding.end()) return;
  choices_[map] = std::string(key) + ": " + word;
}

void KeySurvey::absent(const std::string& map, std::string_view key) {
  if (SurveyedKey* known = find(map, key)) known->seen_absent = true;
}

}  // namespace stagecraft
