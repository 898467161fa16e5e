// Samples and small jobs of Megatron-LM as the tests import them.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "formats/megatron.hpp"
#include "tests/file_content.hpp"
#include "tests/formats/import_probe.hpp"

namespace stagecraft::testing_megatron {

inline std::string sample(const std::string& name) {
  return content_of(STAGECRAFT_SOURCE_DIR "/tests/data/megatron/" + name);
}

// The definitions that a sample's own comments give: "# TP=8".
inline ShellDefines defines_of(const std::string& text) {
  ShellDefines defines;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (line.starts_with("# ") && equals != std::string::npos && line.find(' ', 2) == std::string::npos)
      defines[line.substr(2, equals - 2)] = line.substr(equals + 1);
  }
  return defines;
}

inline Import import_text(const std::string& text, const ImportRequest& request = {},
                          const ShellDefines& defines = {}) {
  Import import;
  Diagnostics diagnostics;
  if (const auto arguments = read_megatron_text(text, "job", defines, diagnostics))
    import.fragment = import_megatron(*arguments, request, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.sorted()) import.messages.push_back(render(diagnostic));
  return import;
}

inline Import import_sample(const std::string& name, const ImportRequest& request = {}) {
  const std::string text = sample(name);
  return import_text(text, request, defines_of(text));
}

// A job that says everything, with more options behind it.
inline std::string job(const std::string& more) {
  return "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --max-position-embeddings 32 --seq-length "
         "32\n"
         "--micro-batch-size 1 --global-batch-size 64 --vocab-size 1000 --bf16 --nnodes 2 --nproc-per-node "
         "8\n" +
         more;
}

// The arguments of job() as a log prints them, with more lines behind.
inline std::string job_dump(const std::string& more) {
  return "---- arguments ----\n"
         "  num_layers ........ 8\n"
         "  hidden_size ....... 64\n"
         "  num_attention_heads 4\n"
         "  seq_length ........ 32\n"
         "  max_position_embeddings 32\n"
         "  micro_batch_size .. 1\n"
         "  global_batch_size . 64\n"
         "  padded_vocab_size . 1024\n"
         "  bf16 .............. True\n"
         "  world_size ........ 16\n" +
         more + "---- end of arguments ----\n";
}

// A dump with more arguments, which stand in place of those of the same names.
inline std::string with_arguments(const std::string& dump, const std::string& more) {
  std::vector<std::string> names;  // " bf16 "
  std::istringstream lines(more);
  for (std::string line; std::getline(lines, line);) names.push_back(line.substr(1, line.find(' ', 2)));
  std::string text;
  std::istringstream old(dump);
  for (std::string line; std::getline(old, line);) {
    if (line.find("- end of arguments -") != std::string::npos) text += more;
    const bool replaced = std::ranges::any_of(
        names, [&](const std::string& name) { return line.find(name) != std::string::npos; });
    if (!replaced) text += line + "\n";
  }
  return text;
}

}  // namespace stagecraft::testing_megatron
