#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "base/text_file.hpp"
#include "calibrate/fit/nccl_tests.hpp"
#include "formats/hf_config.hpp"
#include "formats/import_entries.hpp"
#include "tools/command_line/files.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/command_line/unpack.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/import_jobs.hpp"
#include "tools/commands/kineto_traces.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kCollectives =
    "all-reduce, all-gather, reduce-scatter, all-to-all, broadcast or send-receive";

std::optional<CollectiveKind> asked_kind(const Arguments& arguments) {
  const std::optional<std::string> op = arguments.text("op");
  if (!op) return std::nullopt;
  const std::optional<CollectiveKind> kind = nccl_collective(*op);
  if (!kind)
    throw UsageError(fmt::format("--op: '{}' is no collective of a profile", *op), std::string(kCollectives));
  return kind;
}

// --op supplies a collective that the file does not name.
void take_asked_kind(NcclRun& run, std::optional<CollectiveKind> asked, const std::string& file,
                     Diagnostics& diagnostics) {
  if (!asked || run.kind == asked) return;
  if (run.program.empty())
    run.kind = asked;
  else
    diagnostics.error(contradicted_option("--op", kCollectiveNames[static_cast<std::size_t>(*asked)],
                                          run.program, {file, 0, 0}));
}

// A fit needs the collective's name, and times that are large enough; without the latter they are kept alone.
void check_run(const NcclRun& run, const std::string& file, Diagnostics& diagnostics) {
  if (!run.kind && run.program.empty()) {
    diagnostics.error({.code = "no-name",
                       .where = {file, 0, 0},
                       .message = "does not say which collective was measured",
                       .hint = "--op all-reduce, or what it was"});
  } else if (!run.kind) {
    diagnostics.error(
        {.code = "no-collective",
         .where = {file, 0, 0},
         .message = fmt::format("is of {}, which a profile does not know", in_quotes(run.program)),
         .hint = std::string(kCollectives)});
  }
  for (Diagnostic missing : missing_for_a_fit(run)) {
    missing.where.file = file;
    diagnostics.add(std::move(missing));
  }
  if (!run.kind) return;
  if (auto unused = curve_without_effect(run)) {
    unused->where.file = file;
    diagnostics.add(std::move(*unused));
  }
}

int import_nccl_tests(const std::vector<std::string>& words, const Arguments& arguments, Session& session) {
  if (words.size() != 1) throw UsageError("`import nccl-tests` takes one file", "- reads standard input");
  const std::string& file = words[0];
  const std::optional<CollectiveKind> asked = asked_kind(arguments);
  Diagnostics diagnostics;
  std::string fragment;
  if (const auto text = unpacked(read_text_file(file, diagnostics), file, diagnostics)) {
    if (std::optional<NcclRun> run = read_nccl_tests(*text, file, diagnostics)) {
      take_asked_kind(*run, asked, file, diagnostics);
      if (!diagnostics.has_errors()) check_run(*run, file, diagnostics);
      if (!diagnostics.has_errors()) fragment = to_fragment(*run, file);
    }
  }
  print_diagnostics(diagnostics.sorted(), arguments, session, kNothingImported);
  session.out << fragment;
  return diagnostics.has_errors() ? kWrongInput : kDone;
}

int import_hf(const std::vector<std::string>& words, const Arguments& arguments, Session& session) {
  if (words.size() != 1)
    throw UsageError("`import hf` takes one file",
                     "stagecraft import hf config.json, or - for standard input");
  Diagnostics diagnostics;
  std::optional<HfConfig> read;
  const std::string name = place_name(words[0]);
  if (const auto text = unpacked(load_text_file(words[0], diagnostics), name, diagnostics))
    read = read_hf_config(*text, name, diagnostics);
  print_diagnostics(diagnostics.sorted(), arguments, session, kNothingImported);
  if (!read) return kWrongInput;
  session.out << to_yaml(read->fragment);
  return kDone;
}

// An importer. It gets the words after its name: files, `-` for standard input, and the words after `--`.
struct Importer {
  std::string_view name;
  std::span<const std::string_view> takes;  // of the options of `import`
  int (*run)(const std::vector<std::string>& words, const Arguments& arguments, Session& session);
};

constexpr std::string_view kOfDeepspeed[] = {"gpus", "node", "vocab"};
constexpr std::string_view kOfKineto[] = {"device", "step", "gpus-per-node"};
constexpr std::string_view kOfMegatron[] = {"define", "gpus", "node", "vocab"};
constexpr std::string_view kOfNcclTests[] = {"op"};
constexpr std::string_view kOfTopology[] = {"device", "link"};

constexpr Importer kImporters[] = {
    {.name = "deepspeed", .takes = kOfDeepspeed, .run = import_deepspeed_job},
    {.name = "hf", .takes = {}, .run = import_hf},
    {.name = "kineto", .takes = kOfKineto, .run = import_kineto_traces},
    {.name = "megatron", .takes = kOfMegatron, .run = import_megatron_job},
    {.name = "nccl-tests", .takes = kOfNcclTests, .run = import_nccl_tests},
    {.name = "topology", .takes = kOfTopology, .run = import_topology_file},
};

std::vector<std::string> importer_names() {
  std::vector<std::string> names;
  for (const Importer& importer : kImporters) names.emplace_back(importer.name);
  return names;
}

}  // namespace

int import_command(const Arguments& arguments, Session& session) {
  const std::vector<std::string>& words = arguments.words();
  if (words.size() < 2)
    throw UsageError("`import` takes a kind and a file", "stagecraft import nccl-tests run.txt");
  const auto* const importer = std::find_if(std::begin(kImporters), std::end(kImporters),
                                            [&](const Importer& i) { return i.name == words[0]; });
  if (importer == std::end(kImporters))
    throw UsageError(fmt::format("'{}' cannot be imported", words[0]), suggest(words[0], importer_names()));
  refuse_without_effect(arguments, importer->name, importer->takes, "see stagecraft import --help");
  return importer->run({words.begin() + 1, words.end()}, arguments, session);
}

}  // namespace stagecraft
