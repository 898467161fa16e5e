#include "tools/completions.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "sim/scenario/load_software.hpp"
#include "sim/scenario/preset.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/schedule_lab.hpp"

namespace stagecraft {
namespace {

// Completions after an option with a value.
struct Values {
  std::vector<std::string> words;
  bool files = false;
};

Values values_of(const OptionSpec& option, const InstalledNames& names) {
  Values values{.words = {}, .files = option.argument == "FILE"};
  if (option.argument.starts_with("PATH=")) values.words = names.settings;
  if (option.suggestions != nullptr) values.words = option.suggestions();
  if (!option.values.empty())
    for (const std::string_view word : split(option.values, '|')) values.words.emplace_back(word);
  return values;
}

bool takes_files(const CommandSpec& command) {
  return command.completes == "files";
}

bool takes_scenarios(const CommandSpec& command) {
  return takes_files(command) && command.words.starts_with("SCENARIO");
}

// The words of which a command takes one first, and files behind it; empty where it has no such parts.
std::string_view parts_of(const CommandSpec& command) {
  return takes_files(command) ? std::string_view() : command.completes;
}

constexpr std::string_view kOwnOptions[] = {"help", "version", "print-completion", "print-manual"};

// ------------------------------------------------------------------ bash

// Lines of a `case` over "COMMAND OPTION".
std::string bash_values(std::string_view command, std::span<const OptionSpec> options,
                        const InstalledNames& names) {
  std::string out;
  for (const OptionSpec& option : options) {
    if (option.argument.empty()) continue;
    const Values values = values_of(option, names);
    out += fmt::format("      {}\\ --{}) words=\"{}\" files={};;\n", command, option.name,
                       join(values.words, " "), values.files ? "yes" : "");
  }
  return out;
}

// bash splits words at '=': "model=gpt" is three.
constexpr std::string_view kBashWords =
    "# bash completion for stagecraft; made by: stagecraft --print-completion bash\n_stagecraft() {\n"
    "  local cur=${COMP_WORDS[COMP_CWORD]} at=$COMP_CWORD command=${COMP_WORDS[1]}\n"
    "  while [ \"$at\" -gt 2 ] && [[ $cur == =* || ${COMP_WORDS[at-1]} == = ]]; do\n"
    "    cur=${COMP_WORDS[at-1]}$cur at=$((at-1))\n  done\n"
    "  local prev=${COMP_WORDS[at-1]} typed=${cur%\"${COMP_WORDS[COMP_CWORD]#=}\"}\n"
    "  local words= files= parts= word\n  COMPREPLY=()\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    words=\"";

std::string bash_script(const InstalledNames& names) {
  std::string out(kBashWords);
  for (const CommandSpec& command : commands()) out += fmt::format("{} ", command.name);
  for (const std::string_view option : kOwnOptions) out += fmt::format("--{} ", option);
  out.back() = '"';
  out += "\n  else\n    case \"$command\" in\n";
  for (const CommandSpec& command : commands()) {
    out += fmt::format("      {}) words=\"", command.name);
    for (const OptionSpec& option : options_of(command)) out += fmt::format("--{} ", option.name);
    if (takes_scenarios(command)) out += join(names.scenarios, " ") + ' ';
    out.back() = '"';
    if (takes_files(command)) out += " files=yes";
    if (!parts_of(command).empty()) out += fmt::format(" parts=\"{}\"", parts_of(command));
    out += ";;\n";
  }
  out +=
      "    esac\n    if [ -n \"$parts\" ]; then\n"
      "      for word in \"${COMP_WORDS[@]:2:COMP_CWORD-2}\"; do\n"
      "        case \" $parts \" in *\" $word \"*) files=yes;; esac\n      done\n"
      "      [ -n \"$files\" ] || words=\"$words $parts\"\n    fi\n"
      "    case \"$command $prev\" in\n";
  for (const CommandSpec& command : commands()) out += bash_values(command.name, command.options, names);
  out += bash_values("*", common_options(), names);
  return out +
         "    esac\n  fi\n  [ -n \"$files\" ] || compopt +o filenames 2>/dev/null\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\"; "
         "[ -z \"$files\" ] || compgen -f -- \"$cur\")\n"
         "  COMPREPLY=(\"${COMPREPLY[@]#\"$typed\"}\")\n}\n"
         "complete -o filenames -F _stagecraft stagecraft\n";
}

// ------------------------------------------------------------------- zsh

// Inside single quotes, and inside the brackets of _arguments.
std::string for_zsh(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out;
}

std::string zsh_option(const OptionSpec& option, const InstalledNames& names) {
  std::string out = fmt::format("'{}--{}[{}]", option.repeated ? "*" : "", option.name, for_zsh(option.help));
  if (!option.argument.empty()) {
    const Values values = values_of(option, names);
    out += fmt::format(":{}:", for_zsh(option.argument));
    if (values.files) out += "_files";
    if (!values.words.empty()) out += fmt::format("({})", join(values.words, " "));
  }
  return out + "'";
}

std::string zsh_script(const InstalledNames& names) {
  std::string out = "#compdef stagecraft\n# made by: stagecraft --print-completion zsh\n";
  out += fmt::format("_stagecraft_scenarios() {{\n  compadd -- {}\n  _files\n}}\n_stagecraft() {{\n",
                     join(names.scenarios, " "));
  out += "  local -a commands\n  commands=(\n";
  for (const CommandSpec& command : commands())
    out += fmt::format("    '{}:{}'\n", command.name, for_zsh(command.summary));
  out += "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    compadd --";
  for (const std::string_view option : kOwnOptions) out += fmt::format(" --{}", option);
  out +=
      "\n    return\n  fi\n  local command=${words[2]}\n  shift words\n  (( CURRENT-- ))\n  case $command "
      "in\n";
  for (const CommandSpec& command : commands()) {
    out += fmt::format("    {})\n      _arguments", command.name);
    for (const OptionSpec& option : options_of(command)) out += " \\\n        " + zsh_option(option, names);
    if (takes_scenarios(command))
      out += " \\\n        '*:scenario:_stagecraft_scenarios'";
    else if (takes_files(command))
      out += " \\\n        '*:file:_files'";
    else if (!parts_of(command).empty())
      out += fmt::format(" \\\n        '1:word:({})' '*:file:_files'", parts_of(command));
    out += " ;;\n";
  }
  return out +
         "  esac\n}\nif [ \"$funcstack[1]\" = _stagecraft ]; then _stagecraft \"$@\"; else compdef "
         "_stagecraft stagecraft; fi\n";
}

// ------------------------------------------------------------------ fish

std::string for_fish(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_option(const std::string& when, const OptionSpec& option, const InstalledNames& names) {
  std::string out = fmt::format("complete -c stagecraft -n {} -l {} -d {}", for_fish(when), option.name,
                                for_fish(option.help));
  if (option.argument.empty()) return out + "\n";
  const Values values = values_of(option, names);
  out += values.files ? " -r -F" : " -x";
  if (!values.words.empty()) out += " -a " + for_fish(join(values.words, " "));
  return out + "\n";
}

// The command is the first word: `schedule import` has the word of another.
constexpr std::string_view kFishFunctions =
    "function __stagecraft_command\n    set -l words (commandline -opc)\n"
    "    test (count $words) -ge 2; and test \"$words[2]\" = $argv[1]\nend\n"
    "function __stagecraft_part\n    set -l words (commandline -opc)\n    set -e words[1..2]\n"
    "    for word in $words\n        contains -- $word $argv; and return 0\n    end\n    return 1\nend\n";

std::string fish_script(const InstalledNames& names) {
  std::string out = "# fish completion for stagecraft; made by: stagecraft --print-completion fish\n";
  out += kFishFunctions;
  out += "complete -c stagecraft -f\n";
  for (const CommandSpec& command : commands()) {
    out += fmt::format("complete -c stagecraft -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       for_fish(command.summary));
  }
  for (const std::string_view option : kOwnOptions)
    out += fmt::format("complete -c stagecraft -n __fish_use_subcommand -l {}\n", option);
  for (const CommandSpec& command : commands()) {
    const std::string when = fmt::format("__stagecraft_command {}", command.name);
    const std::string part = fmt::format("__stagecraft_part {}", parts_of(command));
    if (takes_files(command)) {
      out += fmt::format("complete -c stagecraft -n {} -F\n", for_fish(when));
      if (takes_scenarios(command))
        out += fmt::format("complete -c stagecraft -n {} -a {}\n", for_fish(when),
                           for_fish(join(names.scenarios, " ")));
    } else if (!parts_of(command).empty()) {
      out += fmt::format("complete -c stagecraft -n {} -a {}\n", for_fish(when + "; and not " + part),
                         for_fish(parts_of(command)));
      out += fmt::format("complete -c stagecraft -n {} -F\n", for_fish(when + "; and " + part));
    }
    for (const OptionSpec& option : options_of(command)) out += fish_option(when, option, names);
  }
  return out;
}

constexpr Completion kCompletions[] = {{.shell = "bash", .script = bash_script},
                                       {.shell = "zsh", .script = zsh_script},
                                       {.shell = "fish", .script = fish_script}};

}  // namespace

InstalledNames installed_names(const DataDirectory& data) {
  const auto names_of = [&](PresetKind kind) { return data.names(std::string(kind.folder)); };
  InstalledNames installed{.scenarios = installed_scenarios(data), .settings = {}};
  const auto add = [&](std::string_view key, const std::vector<std::string>& names) {
    for (const std::string& name : names) installed.settings.push_back(fmt::format("{}={}", key, name));
  };
  add("model", names_of(kModelPreset));
  add("cluster.node", names_of(kNodePreset));
  add("cluster.fabric", names_of(kFabricPreset));
  add("profile", names_of(kProfilePreset));
  add("schedule", schedule_names());
  add("options.software", names_of(kSoftwarePreset));
  return installed;
}

std::span<const Completion> completions() {
  return kCompletions;
}

}  // namespace stagecraft
