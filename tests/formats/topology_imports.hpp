// Topology files as tests import them.
#pragma once

#include <string>
#include <vector>

#include "formats/topology_file.hpp"
#include "tests/file_content.hpp"
#include "tests/formats/import_probe.hpp"

namespace stagecraft {

inline Import import_of(const std::string& text, const TopologyRequest& request = {}) {
  Diagnostics diagnostics;
  Import import;
  import.fragment = import_topology(text, "topo", request, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.sorted()) import.messages.push_back(render(diagnostic));
  return import;
}

inline Import import_of_file(const std::string& file, const TopologyRequest& request = {}) {
  return import_of(content_of(STAGECRAFT_SOURCE_DIR "/tests/data/" + file), request);
}

}  // namespace stagecraft
