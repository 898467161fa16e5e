// Traces of PyTorch's profiler as commands read them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/kineto_samples.hpp"
#include "tools/command_line/command_line.hpp"

namespace stagecraft {

// Loads a trace with the steps that `--step` asks for, else those that count. Reports; nullopt where the file
// is refused.
[[nodiscard]] std::optional<MeasuredTrace> load_measured_trace(const std::string& file,
                                                               const Arguments& arguments,
                                                               Diagnostics& diagnostics);

// `stagecraft import kineto FILE…`: samples as a YAML list, one a line.
int import_kineto_traces(const std::vector<std::string>& words, const Arguments& arguments, Session& session);

}  // namespace stagecraft
