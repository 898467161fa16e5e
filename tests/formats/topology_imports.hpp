// Topology files as tests import them.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "formats/topology_file.hpp"
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
  std::ifstream in(std::string(STAGECRAFT_SOURCE_DIR "/tests/data/") + file, std::ios::binary);
  EXPECT_TRUE(in) << file;
  return import_of(std::string(std::istreambuf_iterator<char>(in), {}), request);
}

}  // namespace stagecraft
