// A published table of the repository.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/diagnostic.hpp"
#include "tests/sim/repository_files.hpp"
#include "tools/validation/published.hpp"

namespace stagecraft {

// calibrate/validation/NAME.yaml, with what is known of its source; throws where it cannot be read.
inline PublishedSet published(const std::string& name) {
  Diagnostics diagnostics;
  const std::filesystem::path folder = repository().root / "calibrate/validation";
  const std::vector<KnownSource> sources = load_known_sources(folder / "sources.yaml", diagnostics);
  auto set = load_published(folder / (name + ".yaml"), sources, diagnostics);
  diagnostics.throw_if_errors();
  return *std::move(set);
}

}  // namespace stagecraft
