#include "tools/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>

#include "base/text.hpp"

namespace stagecraft {
namespace {

namespace po = boost::program_options;

constexpr OptionSpec kCommonOptions[] = {
    {.name = "json",
     .argument = "",
     .help = "one JSON document per scenario and line on standard output",
     .values = ""},
    {.name = "quiet", .argument = "", .help = "only the answer", .values = ""},
    {.name = "verbose",
     .argument = "",
     .help = "formulas, assumptions and source lines as well",
     .values = ""},
    {.name = "color",
     .argument = "WHEN",
     .help = "colour on a terminal (NO_COLOR is honoured)",
     .values = "auto|always|never"},
    {.name = "seed",
     .argument = "N",
     .help = "seed of what is random; a run has nothing random",
     .values = ""},
    {.name = "jobs", .argument = "N", .help = "threads for many scenarios", .values = ""},
    {.name = "help", .argument = "", .help = "this text", .values = ""},
};

std::vector<std::string> option_names(const CommandSpec& command) {
  std::vector<std::string> names;
  for (const auto& list : {command.options, common_options()}) {
    for (const OptionSpec& option : list) names.emplace_back(option.name);
  }
  return names;
}

constexpr const char* kWords = "words that are no options";

po::options_description describe(const CommandSpec& command) {
  po::options_description description;
  description.add_options()(kWords, po::value<std::vector<std::string>>(), "");
  for (const auto& list : {command.options, common_options()}) {
    for (const OptionSpec& option : list) {
      if (option.argument.empty()) {
        description.add_options()(std::string(option.name).c_str(), "");
      } else {
        description.add_options()(std::string(option.name).c_str(), po::value<std::vector<std::string>>(),
                                  "");
      }
    }
  }
  return description;
}

UsageError unknown_option(const CommandSpec& command, std::string name) {
  name.erase(0, name.find_first_not_of('-'));
  name = name.substr(0, name.find('='));
  const std::optional<std::string> near = nearest_name(name, option_names(command));
  std::string hint = near ? fmt::format("did you mean --{}?", *near) : "";
  for (const CommandSpec& other : commands()) {
    for (const OptionSpec& option : other.options) {
      const bool meant = option.name == name || (name.size() >= 3 && option.name.starts_with(name));
      if (hint.empty() && meant) hint = fmt::format("--{} belongs to `{}`", option.name, other.name);
    }
  }
  if (hint.empty()) hint = fmt::format("see stagecraft {} --help", command.name);
  return UsageError(fmt::format("--{} is not an option of `{}`", name, command.name), hint);
}

void check_values(const CommandSpec& command, const Arguments& arguments) {
  for (const auto& list : {command.options, common_options()}) {
    for (const OptionSpec& option : list) {
      const std::vector<std::string> given = arguments.all(option.name);
      if (given.size() > 1 && !option.repeated && !option.argument.empty()) {
        throw UsageError(fmt::format("--{} is given {} times", option.name, given.size()), "give it once");
      }
      if (option.values.empty()) continue;
      for (const std::string& value : given) {
        const std::string known = fmt::format("|{}|", option.values);
        if (known.find("|" + value + "|") == std::string::npos) {
          throw UsageError(fmt::format("--{}: '{}' is none of {}", option.name, value, option.values), "");
        }
      }
    }
  }
}

std::string options_help(std::span<const OptionSpec> options) {
  TextTable table({Align::kLeft, Align::kLeft});
  for (const OptionSpec& option : options) {
    const std::string argument = option.argument.empty() ? "" : fmt::format(" {}", option.argument);
    const std::string values = option.values.empty() ? "" : fmt::format(" ({})", option.values);
    table.row({fmt::format("--{}{}", option.name, argument), fmt::format("{}{}", option.help, values)});
  }
  return table.str(2);
}

}  // namespace

class CommandLineParser {
 public:
  static Arguments parse(const CommandSpec& command, const std::vector<std::string>& words) {
    // Names must be written out: a guessed option could mean another one tomorrow.
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::positional_options_description positional;  // without one, words that are no options would vanish
    positional.add(kWords, -1);
    const po::options_description description = describe(command);
    Arguments arguments;
    const po::parsed_options parsed = po::command_line_parser(words)
                                          .options(description)
                                          .style(style)
                                          .positional(positional)
                                          .allow_unregistered()
                                          .run();
    for (const auto& option : parsed.options) {
      if (option.unregistered) throw unknown_option(command, option.original_tokens.front());
      if (option.string_key == kWords) {
        arguments.words_.insert(arguments.words_.end(), option.value.begin(), option.value.end());
        continue;
      }
      auto& values = arguments.values_[option.string_key];
      values.insert(values.end(), option.value.begin(), option.value.end());
    }
    return arguments;
  }
};

std::vector<std::string> Arguments::all(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

std::optional<std::string> Arguments::text(std::string_view option) const {
  const std::vector<std::string> given = all(option);
  return given.empty() ? std::nullopt : std::optional(given.front());
}

int Arguments::integer(std::string_view option, std::optional<int> fallback, int min, int max) const {
  const std::optional<std::string> given = text(option);
  if (!given) {
    if (fallback) return *fallback;
    throw UsageError(fmt::format("--{} is missing", option),
                     fmt::format("--{} N, from {} to {}", option, min, max));
  }
  const std::optional<std::int64_t> number = parse_integer(*given);
  if (!number) throw UsageError(fmt::format("--{}: '{}' is no whole number", option, *given), "");
  if (*number < min || *number > max) {
    throw UsageError(fmt::format("--{}: {} is not between {} and {}", option, *given, min, max), "");
  }
  return static_cast<int>(*number);
}

Duration Arguments::duration(std::string_view option, Duration fallback) const {
  const std::optional<std::string> given = text(option);
  if (!given) return fallback;
  const std::optional<Duration> time = parse_duration(*given);
  if (!time)
    throw UsageError(fmt::format("--{}: '{}' is no time", option, *given), "a number with a unit: 1ms, 2.5s");
  return *time;
}

std::span<const OptionSpec> common_options() {
  return kCommonOptions;
}

const CommandSpec* find_command(std::string_view name) {
  const auto found =
      std::find_if(commands().begin(), commands().end(), [&](const auto& c) { return c.name == name; });
  return found == commands().end() ? nullptr : &*found;
}

Arguments parse_arguments(const CommandSpec& command, const std::vector<std::string>& words) {
  try {
    const Arguments arguments = CommandLineParser::parse(command, words);
    check_values(command, arguments);
    return arguments;
  } catch (const po::error& error) {
    throw UsageError(error.what(), fmt::format("see stagecraft {} --help", command.name));
  }
}

std::string overview_help() {
  std::string out = "Stagecraft predicts what a training job will do before anyone pays for the GPUs.\n\n";
  out += "  stagecraft run scenarios/gpt3-175b-1024xA100.yaml\n";
  out += "  stagecraft schedule show --schedule 1f1b --stages 4 --micro-batches 8\n\ncommands\n";
  TextTable table({Align::kLeft, Align::kLeft});
  for (const CommandSpec& command : commands()) {
    table.row({fmt::format("{} {}", command.name, command.words), std::string(command.summary)});
  }
  out += table.str(2);
  out += "\n  stagecraft COMMAND --help          the options of one command\n";
  out += "  stagecraft --print-completion bash shell completion\n";
  return out + "  stagecraft --version\n";
}

std::string command_help(const CommandSpec& command) {
  std::string out;
  for (const std::string_view example : command.examples) out += fmt::format("  {}\n", example);
  out += fmt::format("\nusage: stagecraft {} {}\n{}\n", command.name, command.words, command.summary);
  if (!command.options.empty()) out += "\noptions\n" + options_help(command.options);
  return out + "\nevery command\n" + options_help(common_options());
}

std::string bash_completion() {
  std::string out =
      "# bash completion for stagecraft; made by: stagecraft --print-completion bash\n_stagecraft() {\n";
  out += "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n";
  out += "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W \"";
  for (const CommandSpec& command : commands()) out += fmt::format("{} ", command.name);
  out += "--help --version --print-completion\" -- \"$cur\")); return\n  fi\n  case \"$prev\" in\n";
  std::vector<std::string> done;
  const auto complete_values = [&](std::span<const OptionSpec> options) {
    for (const OptionSpec& option : options) {
      if (option.values.empty() || std::find(done.begin(), done.end(), option.name) != done.end()) continue;
      done.emplace_back(option.name);
      std::string values(option.values);
      std::replace(values.begin(), values.end(), '|', ' ');
      out += fmt::format("    --{}) COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); return;;\n", option.name,
                         values);
    }
  };
  for (const CommandSpec& command : commands()) complete_values(command.options);
  complete_values(common_options());
  out += "  esac\n  case \"$command\" in\n";
  for (const CommandSpec& command : commands()) {
    std::string words;
    for (const std::string& name : option_names(command)) words += fmt::format("--{} ", name);
    const bool files = command.completes == "scenarios" || command.completes == "files";
    if (!files) words += command.completes;
    out += fmt::format("    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"){});;\n", command.name, words,
                       files ? " $(compgen -f -- \"$cur\")" : "");
  }
  return out + "  esac\n}\ncomplete -o filenames -F _stagecraft stagecraft\n";
}

}  // namespace stagecraft
