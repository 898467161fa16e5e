#include "calibrate/bench/options.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>

#include "calibrate/bench/family_names.hpp"
#include "calibrate/samples/plan.hpp"

namespace stagecraft {
namespace {

constexpr double kQuickBudget = 90;

int whole_number(const std::string& option, const std::string& text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw UsageError(option + " " + text + ": a number from 0 is expected");
  return value;
}

std::vector<std::string> family_names(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    names.push_back(list.substr(start, end - start));
    start = end + 1;
    const bool known = std::ranges::any_of(
        kFamilyNames, [&](const FamilyName& family) { return names.back() == family.name; });
    if (!known) throw UsageError("--families: no family \"" + names.back() + "\"\n" + usage());
  }
  return names;
}

double budget_of(const std::string& text) {
  const auto seconds = parse_budget(text);
  if (!seconds) throw UsageError("--budget " + text + ": a duration such as 8m, 90s or 1h30m is expected");
  return *seconds;
}

struct Option {
  const char* name;
  const char* argument;  // null: a flag
  const char* help;
  std::function<void(CalibrateOptions&, const std::string&)> apply;
};

const std::vector<Option>& table() {
  static const std::vector<Option> kOptions = {
      {"--out", "FILE",
       "add samples to FILE, which is taken up where it was left (samples.jsonl); - is standard output",
       [](CalibrateOptions& o, const std::string& text) { o.out = text; }},
      {"--budget", "TIME",
       "stop when it is spent, most valuable points first (8m); `none` measures everything",
       [](CalibrateOptions& o, const std::string& text) {
         o.budget_seconds = text == "none" ? std::nullopt : std::optional(budget_of(text));
       }},
      {"--families", "A,B", "only these families",
       [](CalibrateOptions& o, const std::string& text) { o.families = family_names(text); }},
      {"--shapes", "FILE",
       "only the points of FILE, one JSON line each, as `stagecraft calibrate plan` writes them",
       [](CalibrateOptions& o, const std::string& text) { o.shapes = text; }},
      {"--list", nullptr,
       "print the plan with values and estimated seconds, and measure nothing; needs no GPU",
       [](CalibrateOptions& o, const std::string&) { o.list = true; }},
      {"--check", nullptr, "check results against float64, time and write nothing",
       [](CalibrateOptions& o, const std::string&) { o.check = true; }},
      {"--quick", nullptr, "fewer repeats and a budget of 90s",
       [](CalibrateOptions& o, const std::string&) {
         o.quick = true;
         o.budget_seconds = kQuickBudget;
       }},
      {"--id-file", "FILE",
       "one process a GPU, on one host or several: collectives over all of them (see below)",
       [](CalibrateOptions& o, const std::string& text) { o.id_file = text; }},
      {"--rank", "N", "of this process in the job; from the launcher unless given",
       [](CalibrateOptions& o, const std::string& text) { o.rank = whole_number("--rank", text); }},
      {"--ranks", "N", "processes of the job; from the launcher unless given",
       [](CalibrateOptions& o, const std::string& text) { o.ranks = whole_number("--ranks", text); }},
      {"--nodes", "N", "hosts of the job; from the launcher unless given, else 1",
       [](CalibrateOptions& o, const std::string& text) { o.nodes = whole_number("--nodes", text); }},
      {"--device", "N", "which GPU (0; in a job the one of the process on its host)",
       [](CalibrateOptions& o, const std::string& text) { o.device = whole_number("--device", text); }},
      {"--restarts", "N", nullptr,  // of the program itself, see runner.hpp
       [](CalibrateOptions& o, const std::string& text) { o.restarts = whole_number("--restarts", text); }},
      {"--help", nullptr, "this text", [](CalibrateOptions& o, const std::string&) { o.help = true; }},
  };
  return kOptions;
}

}  // namespace

std::string usage() {
  std::string text =
      "usage: stagecraft-calibrate [OPTION]...\nMeasures this GPU and writes one JSON line a sample.\n\n";
  for (const Option& option : table()) {
    if (option.help == nullptr) continue;
    std::string left = std::string("  ") + option.name +
                       (option.argument != nullptr ? std::string(" ") + option.argument : "");
    left.resize(std::max<std::size_t>(left.size() + 1, 20), ' ');
    text += left + option.help + "\n";
  }
  text += "\nfamilies:\n";
  for (const FamilyName& family : kFamilyNames) {
    std::string left = std::string("  ") + family.name;
    left.resize(20, ' ');
    text += left + family.measures + "\n";
  }
  text +=
      "\na job: start one process a GPU with the same command line, by mpirun or srun, or by hand with "
      "--rank "
      "and\n--ranks. FILE is on a file system that all see, and must not exist. Rank 0 writes the samples.\n";
  return text + "\nexit: 0 done, 1 a wrong result or a lost device, 2 no GPU or bad input\n";
}

CalibrateOptions parse_options(const std::vector<std::string>& arguments) {
  CalibrateOptions options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i], value;
    const std::size_t equals = name.find('=');
    const bool joined = equals != std::string::npos;
    if (joined) value = name.substr(equals + 1);
    name.resize(std::min(equals, name.size()));
    const auto option = std::ranges::find_if(table(), [&](const Option& o) { return name == o.name; });
    if (option == table().end()) throw UsageError("unknown option " + arguments[i] + "\n" + usage());
    if (option->argument == nullptr && joined) throw UsageError(name + " takes no value");
    if (option->argument != nullptr && !joined) {
      if (i + 1 == arguments.size()) throw UsageError(name + " needs " + option->argument);
      value = arguments[++i];
    }
    option->apply(options, value);
  }
  return options;
}

}  // namespace stagecraft
