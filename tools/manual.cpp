#include "tools/manual.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/text.hpp"
#include "tools/commands/commands.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kPurpose =
    "Stagecraft is a discrete-event simulator of training clusters. From a scenario in YAML (model, cluster, "
    "parallelism, pipeline schedule, failure rates) it predicts iteration time, bubble, throughput, memory "
    "and goodput.";

constexpr std::pair<std::string_view, std::string_view> kExitCodes[] = {
    {"0", "done"},
    {"1",
     "the answer is no: it does not fit, an assertion is missed, an error passes its bound, a dead node "
     "stops the iteration"},
    {"2", "the command line or a file is wrong"},
    {"3", "a mistake of ours"},
    {"128+n", "ended by signal n"}};

constexpr std::pair<std::string_view, std::string_view> kEnvironment[] = {
    {"STAGECRAFT_DATA",
     "the folder that holds scenarios/ and calibrate/, where they are not beside the program"},
    {"NO_COLOR", "set and not empty: no colour unless --color always"}};

std::string help_of(const OptionSpec& option) {
  std::string choice(option.values);
  if (option.suggestions != nullptr) choice = join(option.suggestions(), ", ");
  return choice.empty() ? std::string(option.help) : fmt::format("{}. One of: {}", option.help, choice);
}

// ------------------------------------------------------------------- man

// A backslash begins a request, a hyphen may be broken, a line must not begin with a dot or a quote.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string man_options(std::span<const OptionSpec> options) {
  std::string out;
  for (const OptionSpec& option : options) {
    out += fmt::format(".TP\n\\fB\\-\\-{}\\fR{}\n{}\n", roff(option.name),
                       option.argument.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(option.argument)),
                       roff(help_of(option)));
  }
  return out;
}

std::string man_command(const CommandSpec& command) {
  std::string out = fmt::format(".SS stagecraft {}{}{}\n{}\n", command.name, command.words.empty() ? "" : " ",
                                roff(command.words), roff(command.summary));
  out += man_options(command.options);
  for (const std::string_view example : command.examples)
    out += fmt::format(".PP\n.EX\n{}\n.EE\n", roff(example));
  return out;
}

std::string man_page() {
  std::string out = "'\\\" t\n.TH STAGECRAFT 1 \"\" \"stagecraft " STAGECRAFT_VERSION "\"\n";
  out += ".SH NAME\nstagecraft \\- predict what a training job will do on a cluster\n";
  out += ".SH SYNOPSIS\n.B stagecraft\n.I command\n.RI [ words ]\n.RI [ options ]\n";
  out += fmt::format(".SH DESCRIPTION\n{}\n", roff(kPurpose));
  out += ".SH COMMANDS\n";
  for (const CommandSpec& command : commands()) out += man_command(command);
  out += ".SH OPTIONS OF EVERY COMMAND\n" + man_options(common_options());
  out += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kExitCodes)
    out += fmt::format(".TP\n{}\n{}\n", roff(code), roff(meaning));
  out += ".SH ENVIRONMENT\n";
  for (const auto& [name, meaning] : kEnvironment)
    out += fmt::format(".TP\n.B {}\n{}\n", name, roff(meaning));
  return out;
}

// -------------------------------------------------------------- markdown

std::string markdown_options(std::span<const OptionSpec> options) {
  std::string out = "| option | what it does |\n|---|---|\n";
  for (const OptionSpec& option : options) {
    out += fmt::format("| `--{}{}` | {} |\n", option.name,
                       option.argument.empty() ? "" : fmt::format(" {}", option.argument),
                       markdown_cell(help_of(option)));
  }
  return out;
}

std::string markdown() {
  std::string out = "# Commands\n\n";
  out +=
      "Made by `stagecraft --print-manual markdown` from the table that the parser, `--help`, the man page "
      "and the completions of shells are made of; a test compares them.\n\n";
  out += fmt::format("{}\n", kPurpose);
  for (const CommandSpec& command : commands()) {
    out += fmt::format("\n## {}\n\n`stagecraft {}{}{}`: {}\n\n", command.name, command.name,
                       command.words.empty() ? "" : " ", command.words, command.summary);
    if (!command.options.empty()) out += markdown_options(command.options) + "\n";
    out += "```sh\n";
    for (const std::string_view example : command.examples) out += fmt::format("{}\n", example);
    out += "```\n";
  }
  out += "\n## Options of every command\n\n" + markdown_options(common_options());
  out += "\n## Exit codes\n\n| code | meaning |\n|---|---|\n";
  for (const auto& [code, meaning] : kExitCodes) out += fmt::format("| {} | {} |\n", code, meaning);
  out += "\n## Environment\n\n| variable | meaning |\n|---|---|\n";
  for (const auto& [name, meaning] : kEnvironment) out += fmt::format("| `{}` | {} |\n", name, meaning);
  return out;
}

constexpr Manual kManuals[] = {{.form = "man", .text = man_page}, {.form = "markdown", .text = markdown}};

}  // namespace

std::span<const Manual> manuals() {
  return kManuals;
}

}  // namespace stagecraft
