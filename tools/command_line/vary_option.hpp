// --vary of `compare` and `goodput`: paths of a scenario with values, and the files that are varied. And of all
// that vary something, what --set says in vain.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/study/compare.hpp"
#include "tools/command_line/command_line.hpp"

namespace stagecraft {

// "a,b=[1,2],[3,4]" ties keys together, which sweeps alone do. throws UsageError.
void refuse_tied_keys(const std::string& varied);

// throws UsageError for a text that is none, for several keys at once, and for a path that is varied twice, or
// beside a part of it.
[[nodiscard]] std::vector<Vary> varied_by(const Arguments& arguments);

// Before the variants are made. throws UsageError where they are more than `most`.
void refuse_more_variants(std::size_t most, const std::vector<std::string>& files,
                          const std::vector<Vary>& varied);

// A path that a study varies, and what says so: "--vary varies it".
struct VariedPath {
  std::string path, why;
};
[[nodiscard]] std::vector<VariedPath> varied_paths(const std::vector<Vary>& varied);

// Warnings "had no effect: why" for each --set of a varied path or of a part of it: every variant has a value
// of its own there. Nothing of a key that is taken away (null).
[[nodiscard]] std::vector<Diagnostic> overruled_settings(const Arguments& arguments,
                                                         const std::vector<VariedPath>& varied);

// A varied value is an override like any other; what is wrong with it stands in --vary, not in --set.
void say_vary(std::vector<Diagnostic>& diagnostics, const std::vector<std::string>& paths);

// Every variant reads its file: the session's data, with what standard input says in place of `-` where that
// is one of the words. throws ScenarioError where it cannot be read.
[[nodiscard]] DataDirectory with_standard_input(const Arguments& arguments, const Session& session);

}  // namespace stagecraft
