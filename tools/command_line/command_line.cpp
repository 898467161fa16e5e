#include "tools/command_line/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <thread>
#include <utility>

#include "base/text.hpp"
#include "base/yaml_units.hpp"

namespace stagecraft {
namespace {

namespace po = boost::program_options;

constexpr int kMostJobs = 1'024;

constexpr OptionSpec kCommonOptions[] = {
    {.name = "json", .help = "standard output is JSON, one document per scenario and line"},
    {.name = "quiet", .help = "only the answer"},
    {.name = "verbose", .help = "formulas, assumptions and source lines as well"},
    {.name = "color",
     .argument = "WHEN",
     .help = "colour on a terminal; NO_COLOR is honoured",
     .values = "auto|always|never"},
    {.name = "seed", .argument = "N", .help = "seed of what is random; a run has nothing random"},
    {.name = "jobs",
     .argument = "N",
     .help = "threads at most: for several scenarios, points, plans, repeats"},
    {.name = "help", .help = "this text"},
};

std::vector<std::string> option_names(const CommandSpec& command) {
  std::vector<std::string> names;
  for (const OptionSpec& option : options_of(command)) names.emplace_back(option.name);
  return names;
}

constexpr const char* kWords = "words that are no options";

po::options_description describe(const CommandSpec& command) {
  po::options_description description;
  description.add_options()(kWords, po::value<std::vector<std::string>>(), "");
  for (const OptionSpec& option : options_of(command)) {
    const std::string name(option.name);
    if (option.argument.empty())
      description.add_options()(name.c_str(), "");
    else
      description.add_options()(name.c_str(), po::value<std::vector<std::string>>(), "");
  }
  return description;
}

// The name of a command in messages: "run", but "schedule show".
std::string spoken(const CommandSpec& command) {
  const bool fixed = !command.words.empty() && command.words.find("…") == std::string_view::npos;
  return fixed ? fmt::format("{} {}", command.name, command.words) : std::string(command.name);
}

// The intended option of another command, and its replacement here.
std::optional<std::string> meant_elsewhere(const CommandSpec& command, std::span<const CommandSpec> others,
                                           const std::function<bool(std::string_view)>& is_meant) {
  const std::vector<std::string> own = option_names(command);
  for (const CommandSpec& other : others) {
    for (const OptionSpec& option : other.options) {
      if (&other == &command || !is_meant(option.name)) continue;
      std::string hint = fmt::format("did you mean --{} (of `{}`)", option.name, spoken(other));
      if (!option.key.empty() && std::find(own.begin(), own.end(), "set") != own.end())
        hint += fmt::format(" or --set {}=…", option.key);
      return hint + "?";
    }
  }
  return std::nullopt;
}

// Suggests options with this prefix, here and elsewhere, then similar ones.
std::string option_hint(const CommandSpec& command, std::span<const CommandSpec> others,
                        const std::string& name) {
  const auto begins = [&](std::string_view known) { return name.size() >= 3 && known.starts_with(name); };
  const auto resembles = [&](std::string_view known) {
    const std::vector<std::string> one = {std::string(known)};
    return nearest_name(name, one).has_value();
  };
  const std::vector<std::string> own = option_names(command);
  const auto begun = std::find_if(own.begin(), own.end(), begins);
  if (begun != own.end()) return fmt::format("did you mean --{}?", *begun);
  if (const auto elsewhere = meant_elsewhere(command, others, begins)) return *elsewhere;
  if (const auto near = nearest_name(name, own)) return fmt::format("did you mean --{}?", *near);
  if (const auto elsewhere = meant_elsewhere(command, others, resembles)) return *elsewhere;
  return fmt::format("see stagecraft {} --help", command.name);
}

UsageError unknown_option(const CommandSpec& command, std::span<const CommandSpec> others,
                          const std::string& given) {
  const std::string written = given.substr(0, given.find('='));
  const std::string name = written.substr(std::min(written.find_first_not_of('-'), written.size()));
  return UsageError(fmt::format("{} is not an option of `{}`", written, command.name),
                    option_hint(command, others, name));
}

// Checks the values of common options, whether or not the command uses them.
void check_common(const Arguments& arguments) {
  (void)seed_of(arguments);
  (void)jobs_of(arguments);
}

void check_values(const CommandSpec& command, const Arguments& arguments) {
  for (const OptionSpec& option : options_of(command)) {
    const std::vector<std::string> given = arguments.all(option.name);
    if (given.size() > 1 && !option.repeated && !option.argument.empty())
      throw UsageError(fmt::format("--{} is given {} times", option.name, given.size()), "give it once");
    if (option.values.empty()) continue;
    const std::vector<std::string_view> known = split(option.values, '|');
    for (const std::string& value : given)
      if (std::ranges::find(known, value) == known.end())
        throw UsageError(fmt::format("--{}: '{}' is not one of its values", option.name, value),
                         "one of " + std::string(option.values));
  }
}

// Lines of at most `width` characters, cut at blanks.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines = {""};
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

std::string options_help(std::span<const OptionSpec> options) {
  constexpr std::size_t kWidth = 100;
  std::vector<std::string> names;
  for (const OptionSpec& option : options) {
    const std::string argument = option.argument.empty() ? "" : fmt::format(" {}", option.argument);
    names.push_back(fmt::format("--{}{}", option.name, argument));
  }
  const auto longest = std::ranges::max_element(names, {}, &std::string::size);
  TextTable table({Align::kLeft, Align::kLeft});
  for (std::size_t i = 0; i < options.size(); ++i) {
    std::string choice(options[i].values);
    if (options[i].suggestions != nullptr) choice = join(options[i].suggestions(), ", ");
    if (!choice.empty()) choice += ": ";
    const std::string text = choice + std::string(options[i].help);
    std::string name = names[i];
    for (const std::string& line : wrapped(text, kWidth - 4 - longest->size()))
      table.row({std::exchange(name, ""), line});
  }
  return table.str(2);
}

// How many words stand behind the `--` that ends the options: one that is an option's value ends none.
std::size_t count_behind_dashes(const std::vector<std::string>& words, const po::parsed_options& parsed) {
  std::size_t at = 0;
  for (const auto& option : parsed.options) {
    if (at < words.size() && words[at] == "--") return words.size() - at - 1;
    at += option.original_tokens.size();
  }
  return 0;
}

std::string in_our_words(const po::error& error) {
  const auto* syntax = dynamic_cast<const po::invalid_command_line_syntax*>(&error);
  if (syntax == nullptr) return error.what();
  using Syntax = po::invalid_syntax;
  if (syntax->kind() == Syntax::extra_parameter) return syntax->get_option_name() + " takes no value";
  if (syntax->kind() == Syntax::missing_parameter) return syntax->get_option_name() + " needs a value";
  return error.what();
}

}  // namespace

class CommandLineParser {
 public:
  static Arguments parse(const CommandSpec& command, std::span<const CommandSpec> others,
                         const std::vector<std::string>& words) {
    // Names must be written out: a guessed option could mean another one tomorrow.
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::positional_options_description positional;  // without one, words that are no options would vanish
    positional.add(kWords, -1);
    const po::options_description description = describe(command);
    Arguments arguments(command);
    const po::parsed_options parsed = po::command_line_parser(words)
                                          .options(description)
                                          .style(style)
                                          .positional(positional)
                                          .allow_unregistered()
                                          .run();
    arguments.behind_dashes_ = count_behind_dashes(words, parsed);
    for (const auto& option : parsed.options) {
      if (option.unregistered && option.original_tokens.front() == "-h") {
        arguments.values_["help"];
        continue;
      }
      if (option.unregistered) throw unknown_option(command, others, option.original_tokens.front());
      if (option.string_key == kWords) {
        if (option.original_tokens.front().starts_with("--=")) throw unknown_option(command, others, "--");
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
  if (!time) {
    const QuantityMistake mistake = explain_bad_quantity(QuantityKind::kDuration, *given);
    throw UsageError(fmt::format("--{}: {}", option, mistake.message), mistake.hint);
  }
  const std::string digits = given->substr(0, given->find_first_of("eE"));
  if (*time == Duration::zero() && digits.find_first_of("123456789") != std::string::npos)
    throw UsageError(fmt::format("--{}: {} is less than half a nanosecond", option, *given),
                     "times are whole nanoseconds");
  return *time;
}

std::uint64_t seed_of(const Arguments& arguments) {
  constexpr int kMost = 2'000'000'000;
  return static_cast<std::uint64_t>(arguments.integer("seed", 1, 0, kMost));
}

int jobs_of(const Arguments& arguments, int otherwise) {
  return arguments.integer("jobs", otherwise, 1, kMostJobs);
}

int all_cores() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostJobs);
}

bool wants_color(const Arguments& arguments, const Session& session) {
  const std::string when = arguments.text("color").value_or("auto");
  if (when != "auto") return when == "always";
  const char* const no_color = std::getenv("NO_COLOR");
  return session.out_is_terminal && (no_color == nullptr || *no_color == '\0');
}

std::span<const OptionSpec> common_options() {
  return kCommonOptions;
}

std::vector<OptionSpec> options_of(const CommandSpec& command) {
  std::vector<OptionSpec> options(command.options.begin(), command.options.end());
  options.insert(options.end(), common_options().begin(), common_options().end());
  return options;
}

Arguments parse_arguments(const CommandSpec& command, std::span<const CommandSpec> others,
                          const std::vector<std::string>& words) {
  try {
    const Arguments arguments = CommandLineParser::parse(command, others, words);
    check_values(command, arguments);
    check_common(arguments);
    return arguments;
  } catch (const po::error& error) {
    throw UsageError(in_our_words(error), fmt::format("see stagecraft {} --help", command.name));
  }
}

void refuse_without_effect(const Arguments& arguments, std::string_view part,
                           std::span<const std::string_view> takes, const std::string& hint) {
  const CommandSpec& command = arguments.command();
  for (const OptionSpec& option : command.options) {
    if (arguments.has(option.name) && std::ranges::find(takes, option.name) == takes.end())
      throw UsageError(fmt::format("--{} is nothing that `{} {}` takes", option.name, command.name, part),
                       hint);
  }
}

void refuse_two_forms(const Arguments& arguments) {
  std::string other;
  for (const char* const form : {"markdown", "graphviz"})
    if (arguments.has(form)) other = form;
  if (const auto format = arguments.text("format"); format && *format != "json") other = "format " + *format;
  if (arguments.has("json") && !other.empty())
    throw UsageError("--" + other + " and --json are two forms of one answer", "give one of them");
}

std::string command_help(const CommandSpec& command) {
  std::string out;
  for (const std::string_view example : command.examples) out += fmt::format("  {}\n", example);
  out += fmt::format("\nusage: stagecraft {}{}{}\n{}\n", command.name, command.words.empty() ? "" : " ",
                     command.words, command.summary);
  if (!command.options.empty()) out += "\noptions\n" + options_help(command.options);
  return out + "\nevery command\n" + options_help(common_options());
}

}  // namespace stagecraft
