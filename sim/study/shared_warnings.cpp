#include "sim/study/shared_warnings.hpp"

namespace stagecraft {

void SharedWarnings::add(const Diagnostics& found) {
  for (const Diagnostic& diagnostic : found.items()) {
    if (diagnostic.severity != Severity::kWarning) continue;
    const std::lock_guard lock(mutex_);
    known_.try_emplace({diagnostic.where, diagnostic.path, diagnostic.message}, diagnostic);
  }
}

std::vector<Diagnostic> SharedWarnings::sorted() const {
  const std::lock_guard lock(mutex_);
  std::vector<Diagnostic> all;
  for (const auto& [key, diagnostic] : known_) all.push_back(diagnostic);
  return all;
}

}  // namespace stagecraft
