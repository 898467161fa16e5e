#include "tools/commands/import_jobs.hpp"

#include <fmt/format.h>

#include <optional>
#include <ostream>

#include "base/text.hpp"
#include "base/text_file.hpp"
#include "base/yaml.hpp"
#include "formats/deepspeed.hpp"
#include "formats/megatron.hpp"
#include "formats/topology_file.hpp"
#include "sim/scenario/library.hpp"
#include "sim/scenario/preset.hpp"
#include "tools/command_line/files.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/command_line/unpack.hpp"

namespace stagecraft {
namespace {

constexpr int kMostGpus = 100'000'000;

// --define TP=8
ShellDefines defines_of(const Arguments& arguments) {
  ShellDefines defines;
  for (const std::string& word : arguments.all("define")) {
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw UsageError(fmt::format("--define: '{}' is no NAME=VALUE", word), "--define TP=8");
    defines[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return defines;
}

std::optional<std::int64_t> asked_number(const Arguments& arguments, std::string_view option) {
  if (!arguments.has(option)) return std::nullopt;
  return arguments.integer(option, {}, 1, kMostGpus);
}

// Number of GPUs of a node with this name.
std::int64_t gpus_of_node(const std::string& name, const Session& session, Diagnostics& diagnostics) {
  const std::filesystem::path here = ".";
  Library library(session.data);
  const auto file = preset_path(name, kNodePreset, {.library = library, .folder = here});
  if (!file) {
    throw UsageError(fmt::format("--node: '{}' is not a known node, nor a file", name),
                     suggest(name, session.data.names(std::string(kNodePreset.folder))));
  }
  const std::optional<YamlNode> node = load_yaml_file(*file, diagnostics);
  const YamlNode* gpus = node ? node->find("gpus") : nullptr;
  return gpus == nullptr ? 1 : parse_integer(gpus->text).value_or(1);
}

ImportRequest request_of(const Arguments& arguments, const Session& session, Diagnostics& diagnostics) {
  ImportRequest request{.gpus = asked_number(arguments, "gpus"),
                        .vocab = asked_number(arguments, "vocab"),
                        .node = arguments.text("node")};
  if (request.node) request.node_gpus = gpus_of_node(*request.node, session, diagnostics);
  return request;
}

int answer(const std::optional<Fragment>& fragment, const Diagnostics& diagnostics,
           const Arguments& arguments, Session& session) {
  print_diagnostics(diagnostics.sorted(), arguments, session, kNothingImported);
  if (!fragment || diagnostics.has_errors()) return kWrongInput;
  session.out << to_yaml(*fragment);
  return kDone;
}

TopologyRequest topology_request_of(const Arguments& arguments) {
  TopologyRequest request{.device = asked_device(arguments)};
  const std::optional<std::string> link = arguments.text("link");
  if (!link) return request;
  request.link = parse_bandwidth(*link);
  if (!request.link || *request.link <= Bandwidth(0))
    throw UsageError(fmt::format("--link: {} is no bandwidth above 0", in_quotes(*link)),
                     "of one NIC, per direction: 400Gb/s or 50GB/s");
  return request;
}

}  // namespace

std::optional<std::string> asked_device(const Arguments& arguments) {
  std::optional<std::string> device = arguments.text("device");
  if (device && device->empty()) throw UsageError("--device: the name is empty", "H100-SXM5-80GB");
  return device;
}

int import_megatron_job(const std::vector<std::string>& words, const Arguments& arguments, Session& session) {
  const bool dashed = words.front().starts_with("-") && words.front() != "-";
  // A launcher and its program may stand before the options; one word behind `--` is still a file.
  const bool launched = words.size() > 1 && arguments.words_behind_dashes() == words.size();
  const bool options = dashed || launched;
  if (!options && words.size() != 1) {
    throw UsageError("`import megatron` takes one file, or options after --",
                     "stagecraft import megatron -- --num-layers 96 …");
  }
  Diagnostics diagnostics;
  const ImportRequest request = request_of(arguments, session, diagnostics);
  const ShellDefines defines = defines_of(arguments);
  std::optional<MegatronArguments> job;
  if (options) {
    job = read_megatron_words(words, defines, diagnostics);
  } else if (const auto text =
                 unpacked(read_text_file(words.front(), diagnostics), words.front(), diagnostics)) {
    job = read_megatron_text(*text, words.front(), defines, diagnostics);
  }
  std::optional<Fragment> fragment;
  if (job) fragment = import_megatron(*job, request, diagnostics);
  return answer(fragment, diagnostics, arguments, session);
}

int import_deepspeed_job(const std::vector<std::string>& words, const Arguments& arguments,
                         Session& session) {
  if (words.size() != 1)
    throw UsageError("`import deepspeed` takes one file", "stagecraft import deepspeed ds_config.json");
  Diagnostics diagnostics;
  const ImportRequest request = request_of(arguments, session, diagnostics);
  std::optional<Fragment> fragment;
  if (const auto text = unpacked(read_text_file(words.front(), diagnostics), words.front(), diagnostics))
    fragment = import_deepspeed(*text, words.front(), request, diagnostics);
  return answer(fragment, diagnostics, arguments, session);
}

int import_topology_file(const std::vector<std::string>& words, const Arguments& arguments,
                         Session& session) {
  if (words.size() != 1)
    throw UsageError("`import topology` takes one file",
                     "stagecraft import topology topo.xml, or - for standard input");
  const TopologyRequest request = topology_request_of(arguments);
  Diagnostics diagnostics;
  std::optional<Fragment> fragment;
  const std::string name = place_name(words.front());
  if (const auto text = unpacked(load_text_file(words.front(), diagnostics), name, diagnostics))
    fragment = import_topology(*text, name, request, diagnostics);
  return answer(fragment, diagnostics, arguments, session);
}

}  // namespace stagecraft
