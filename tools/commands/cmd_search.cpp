#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "base/text.hpp"
#include "base/yaml.hpp"
#include "sim/scenario/named_files.hpp"
#include "sim/scenario/preset.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/search/overlap_trial.hpp"
#include "sim/search/plan_search.hpp"
#include "sim/search/search_space.hpp"
#include "sim/search/stage_axes.hpp"
#include "tools/command_line/document_origin.hpp"
#include "tools/command_line/files.hpp"
#include "tools/command_line/interrupt.hpp"
#include "tools/command_line/option_checks.hpp"
#include "tools/command_line/progress.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/command_line/vary_option.hpp"
#include "tools/commands/commands.hpp"
#include "tools/tables/search_table.hpp"

namespace stagecraft {
namespace {

constexpr const char* kExample = "stagecraft search scenarios/llama3-8b-64xA100.yaml";
constexpr int kMostListed = 1'000'000;

// Paths of a scenario that the search varies.
std::vector<VariedPath> searched_paths(const SearchSpace& space) {
  std::vector<VariedPath> paths;
  for (const SearchAxis& axis : space.axes) {
    const std::string usual = fmt::format("the search varies it (--fix {} keeps it)", axis.path);
    paths.push_back({.path = axis.path, .why = axis.usual ? usual : "the search varies it"});
  }
  if (space.find("parallelism.data") == nullptr)
    paths.push_back({.path = "parallelism.data",
                     .why = "it is what the other degrees leave (--vary lists the numbers that may be)"});
  if (!space.gpus.empty())
    for (const char* path : {"cluster.nodes", "cluster.gpus"})
      paths.push_back({.path = path, .why = "the search has numbers of GPUs of its own (--gpus)"});
  return paths;
}

SearchOptions search_options(const Arguments& arguments, OptionChecks& checks) {
  SearchOptions options;
  const auto top = checks.read([&] { return arguments.integer("top", 10, 1, kMostListed); });
  options.top = static_cast<std::size_t>(top.value_or(1));
  options.threads = checks.read([&] { return jobs_of(arguments, all_cores()); }).value_or(1);
  options.exhaustive = arguments.has("exhaustive");
  return options;
}

SearchWords search_words(const Arguments& arguments, OptionChecks& checks) {
  SearchWords words{.vary = arguments.all("vary"),
                    .fix = arguments.all("fix"),
                    .gpus = arguments.text("gpus"),
                    .price = arguments.text("price")};
  std::erase_if(words.vary, [&](const std::string& varied) {
    return !checks.read([&] { return refuse_tied_keys(varied), true; });
  });
  return words;
}

// A profile of the user's own: a path, not a name.
std::optional<std::string> profile_file_of(const YamlNode& root) {
  const YamlNode* profile = root.find("profile");
  const bool own = profile != nullptr && profile->kind == YamlNode::Kind::kScalar && is_path(profile->text);
  return own ? std::optional(profile->text) : std::nullopt;
}

// The `search` part, which is then no longer in the scenario.
std::optional<YamlNode> taken_from(YamlNode& root) {
  const auto found = std::ranges::find(root.entries, "search", &YamlEntry::key);
  if (found == root.entries.end()) return std::nullopt;
  YamlNode section = std::move(found->value);
  root.entries.erase(found);
  return section;
}

// The search for the plans of one file.
class FileSearch {
 public:
  FileSearch(const std::string& file, const Arguments& arguments, Session& session, Library& library)
      : file_(file),
        arguments_(arguments),
        session_(session),
        library_(library),
        options_(search_options(arguments, checks_)),
        words_(search_words(arguments, checks_)) {}

  int run() {
    Diagnostics diagnostics = checks_.mistakes();
    const std::string refused = not_simulated(file_, arguments_.words());
    try {
      const int code = search(diagnostics);
      if (diagnostics.has_errors() || !arguments_.has("quiet"))
        print_diagnostics(diagnostics.sorted(), arguments_, session_, code == kWrongInput ? refused : "",
                          file_);
      return diagnostics.has_errors() ? kWrongInput : code;
    } catch (const ScenarioError& error) {
      print_diagnostics(error.diagnostics(), arguments_, session_, refused, file_);
      return kWrongInput;
    }
  }

 private:
  int search(Diagnostics& diagnostics) {
    std::optional<ScenarioTree> tree = load_tree(file_, library_, diagnostics);
    if (!tree) return kWrongInput;
    apply_overrides(*tree, arguments_.all("set"), library_, diagnostics);
    const std::optional<YamlNode> section = taken_from(tree->root);
    if (arguments_.has("json")) {
      Diagnostics said_of_plans;
      own_ = load_scenario(*tree, {}, library_, said_of_plans);
    }
    folder_ = tree->folder;
    profile_file_ = profile_file_of(tree->root);
    auto space = load_search_space(session_.data.root / kDefaultSpace, section ? &*section : nullptr, words_,
                                   diagnostics);
    if (space) keep_to_stages(*tree, library_, *space, diagnostics);
    if (!space) return kWrongInput;
    auto plans = enumerate_plans(*tree, *space, library_, diagnostics);
    if (!plans) return kWrongInput;
    print_warnings(overruled_settings(arguments_, searched_paths(*space)), arguments_, session_);
    if (std::ranges::any_of(plans->frames.front().scenario.faults,
                            [](const FaultSpec& fault) { return fault.kind == FaultKind::kDeadNode; })) {
      diagnostics.error({.code = "contradiction",
                         .where = {.file = file_},
                         .path = "faults",
                         .message = "an iteration that a dead node stops has no time to rank plans by",
                         .hint = "leave it out, or search for the best plan of the nodes that are left"});
      return kWrongInput;
    }
    SearchAnswer answer{.file = file_,
                        .name = plans->frames.front().scenario.name,
                        .space = *std::move(space),
                        .plans = *std::move(plans),
                        .result = {},
                        .top = options_.top,
                        .exhaustive = options_.exhaustive};
    return look(answer, diagnostics);
  }

  int look(SearchAnswer& answer, Diagnostics& diagnostics) {
    const Interrupt interrupt;
    ProgressLine progress(session_.err, session_.err_is_terminal, answer.plans.points.size());
    options_.progress = [&](std::size_t done, std::size_t) {
      if (!arguments_.has("quiet")) progress.update(done);
      return Interrupt::signal() == 0;
    };
    answer.result = search_plans(answer.plans, options_);
    progress.finish();
    if (answer.result.stopped) {
      session_.err << "stopped: nothing is known before all plans are looked at\n";
      return kBySignal + Interrupt::signal();
    }
    answer.overlaps = try_tensor_overlap(answer.space, answer.plans, listed_plans(answer), options_.threads);
    if (arguments_.has("json"))
      session_.out << with_origin(render_json(answer), own_ ? *own_ : answer.plans.frames.front().scenario)
                   << '\n';
    else
      session_.out << render_text(answer);
    if (answer.result.ranked.empty()) return kAnswerIsNo;
    write_best(answer, diagnostics);
    return kDone;
  }

  void write_best(const SearchAnswer& answer, Diagnostics& diagnostics) {
    const auto file = arguments_.text("write-best");
    if (!file) return;
    const std::size_t point = answer.result.ranked.front().point;
    Scenario best = scenario_of(answer.plans, point);
    if (profile_file_ && best.profile) best.profile->name = *profile_file_;
    move_named_files(best, folder_, std::filesystem::absolute(*file).parent_path());
    write_text_file(*file, to_yaml(best), arguments_.has("force"), diagnostics);
  }

  const std::string& file_;
  const Arguments& arguments_;
  Session& session_;
  Library& library_;
  OptionChecks checks_ = {};
  SearchOptions options_;
  SearchWords words_;
  std::optional<Scenario> own_{};              // of --json: as it is without a search, where it loads
  std::filesystem::path folder_;               // of the scenario
  std::optional<std::string> profile_file_{};  // as the scenario names it
};

}  // namespace

int search_command(const Arguments& arguments, Session& session) {
  const std::vector<std::string>& files = arguments.words();
  check_scenario_names(files, kExample);
  if (arguments.has("write-best") && files.size() > 1)
    throw UsageError("--write-best is one file, and there are several scenarios", "search one at a time");
  Library library(session.data);
  int worst = kDone;
  for (const std::string& file : files) {
    worst = std::max(worst, FileSearch(file, arguments, session, library).run());
    if (worst >= kBySignal) break;
  }
  return worst;
}

}  // namespace stagecraft
