// libFuzzer entry: no text whatever may crash the reader of profiler traces, leak an exception, or pass
// without either a trace or a message; and the samples of a trace can be read back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <variant>

#include "formats/kineto.hpp"
#include "formats/kineto_samples.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  stagecraft::Diagnostics diagnostics;
  auto trace = stagecraft::read_kineto(in, "fuzz.json", diagnostics);
  if (trace.has_value() == diagnostics.has_errors()) std::abort();
  if (!trace) return 0;
  const auto steps = stagecraft::measured_steps(*trace, {}, "fuzz.json", diagnostics);
  if (!steps) return 0;
  const auto made =
      stagecraft::kineto_samples({{.name = "fuzz.json", .trace = *trace, .steps = *steps}}, 8, diagnostics);
  for (const stagecraft::Sample& sample : made.samples) {
    const auto read = stagecraft::parse_sample(stagecraft::to_json_line(sample));
    if (!std::holds_alternative<stagecraft::Sample>(read)) std::abort();
  }
  return 0;
}
