// Any bytes as a scenario: a message or a scenario, never a crash, and what was read survives to_yaml and
// resolve.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"

namespace {

// The presets of this source tree, unless STAGECRAFT_DATA names others.
std::filesystem::path data_root() {
  if (const char* given = std::getenv("STAGECRAFT_DATA")) return given;
  return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path().parent_path();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace stagecraft;
  const DataDirectory data{.root = data_root()};
  Diagnostics diagnostics;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto root = parse_yaml(text, "fuzz.yaml", diagnostics);
  if (!root) return 0;
  const auto scenario = read_scenario(*root, "fuzz.yaml", data.root / "scenarios", data, diagnostics);
  if (scenario.has_value() == diagnostics.has_errors()) std::abort();  // one or the other
  if (!scenario) return 0;
  (void)to_yaml(*scenario);
  (void)resolve({.model = scenario->model,
                 .cluster = scenario->cluster ? &*scenario->cluster : nullptr,
                 .parallelism = scenario->parallelism,
                 .training = scenario->training,
                 .origins = scenario->origins,
                 .fallback = {.file = "fuzz.yaml"}},
                diagnostics);
  return 0;
}
