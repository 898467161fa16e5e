// Who says which keys of a scenario had no effect (no_effect.hpp), and the subjects that have files of their
// own.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

class Listener {
 public:
  explicit Listener(const Scenario& scenario) : scenario_(scenario) {
    written_.reserve(scenario.origins.size());
    for (const auto& [path, where] : scenario.origins) written_.emplace_back(path);
  }

  // A warning if `idle` holds for a key that the user wrote. One key is named once, with the first reason.
  // A search asks this of every plan, so that no text is made for other keys.
  void say(std::string_view path, bool idle, std::string_view why) {
    if (idle && std::ranges::binary_search(written_, path))
      warn(std::string(path), "no-effect", "had no effect: " + std::string(why));
  }

  void say(std::string_view section, std::initializer_list<const char*> keys, bool idle,
           std::string_view why) {
    if (!idle) return;
    std::string path(section);
    for (const char* key : keys) {
      path.replace(section.size(), std::string::npos, key);
      say(path, true, why);
    }
  }

  // Warns of a key that has less effect than it seems to have.
  void warn(const std::string& path, std::string code, std::string message) {
    const auto written = scenario_.origins.find(path);
    if (written == scenario_.origins.end()) return;
    if (std::ranges::find(warnings_, path, &Diagnostic::path) != warnings_.end()) return;
    warnings_.push_back({.severity = Severity::kWarning,
                         .code = std::move(code),
                         .where = written->second,
                         .path = path,
                         .message = std::move(message)});
  }

  [[nodiscard]] std::vector<Diagnostic> warnings() && { return std::move(warnings_); }

 private:
  const Scenario& scenario_;
  std::vector<std::string_view> written_;  // ascending, as the origins are
  std::vector<Diagnostic> warnings_;
};

void listen_to_failures(Listener& listener, const Scenario& scenario);
void listen_to_cluster(Listener& listener, const Scenario& scenario);

}  // namespace stagecraft
