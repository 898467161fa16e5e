#include "tools/program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/diagnostic.hpp"
#include "base/text.hpp"
#include "tools/command_line/files.hpp"
#include "tools/commands/commands.hpp"
#include "tools/completions.hpp"
#include "tools/manual.hpp"

namespace stagecraft {
namespace {

std::filesystem::path own_path(const char* invoked) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path(invoked) : self;
}

UsageError unknown_command(const std::string& word) {
  std::vector<std::string> names;
  for (const CommandSpec& command : commands()) names.emplace_back(command.name);
  if (word.starts_with('-')) {
    return UsageError(
        fmt::format("{} is not an option of `stagecraft`", word),
        "--help, --version, --print-completion and --print-manual are; others are of a command");
  }
  return UsageError(fmt::format("'{}' is not a command", word), suggest(word, names));
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
  out += "  stagecraft --print-completion bash completion; zsh and fish as well\n";
  out += "  stagecraft --print-manual man      the manual; markdown as well\n";
  return out + "  stagecraft --version\n";
}

int print_help(const std::vector<std::string>& words) {
  if (words.size() < 2 || words[1].starts_with('-')) return std::cout << overview_help(), kDone;
  const CommandSpec* command = find_command(words[1]);
  if (command == nullptr) throw unknown_command(words[1]);
  return std::cout << command_help(*command), kDone;
}

int print_completion(const std::vector<std::string>& words, const char* invoked) {
  const std::optional<DataDirectory> data = DataDirectory::find(own_path(invoked));
  const InstalledNames names = data ? installed_names(*data) : InstalledNames();
  for (const Completion& completion : completions()) {
    if (words.size() == 2 && words[1] == completion.shell)
      return std::cout << completion.script(names), kDone;
  }
  throw UsageError("--print-completion takes the name of a shell", "bash, zsh or fish");
}

int print_manual(const std::vector<std::string>& words) {
  for (const Manual& manual : manuals()) {
    if (words.size() == 2 && words[1] == manual.form) return std::cout << manual.text(), kDone;
  }
  throw UsageError("--print-manual takes a form", "man or markdown");
}

// Options may stand before the command: `stagecraft --json run FILE`.
std::vector<std::string> command_first(std::vector<std::string> words) {
  const auto command =
      std::ranges::find_if(words, [](const std::string& word) { return find_command(word) != nullptr; });
  if (words.front().starts_with('-') && command != words.end())
    std::rotate(words.begin(), command, std::next(command));
  return words;
}

int dispatch(const std::vector<std::string>& given, const char* invoked, const RunCommand& run) {
  if (given.empty()) return std::cerr << overview_help(), kWrongInput;
  if (given[0] == "--version") return std::cout << "stagecraft " STAGECRAFT_VERSION "\n", kDone;
  if (given[0] == "--print-completion") return print_completion(given, invoked);
  if (given[0] == "--print-manual") return print_manual(given);
  if (given[0] == "--help" || given[0] == "-h" || given[0] == "help") return print_help(given);
  const std::vector<std::string> words = command_first(given);
  const CommandSpec* command = find_command(words[0]);
  if (command == nullptr) throw unknown_command(words[0]);
  const Arguments arguments = parse_arguments(*command, commands(), {words.begin() + 1, words.end()});
  if (arguments.has("help")) return std::cout << command_help(*command), kDone;
  check_outputs(arguments);
  const std::optional<DataDirectory> data = DataDirectory::find(own_path(invoked));
  std::optional<Diagnostic> no_data;
  if (!data) no_data = DataDirectory::missing("the program");
  if (no_data && command->run != doctor_command) throw UsageError(no_data->message, no_data->hint);
  Session session{.out = std::cout,
                  .err = std::cerr,
                  .data = data.value_or(DataDirectory()),
                  .out_is_terminal = isatty(STDOUT_FILENO) == 1,
                  .err_is_terminal = isatty(STDERR_FILENO) == 1,
                  .no_data = std::move(no_data)};
  return run(*command, arguments, session);
}

bool wants_json(const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), "--json") != words.end();
}

void report(const std::vector<Diagnostic>& diagnostics, const std::vector<std::string>& words) {
  if (wants_json(words)) {
    std::cout << render_json(diagnostics) << '\n';
    return;
  }
  for (const Diagnostic& diagnostic : diagnostics)
    std::cerr << (diagnostic.where.file.empty() ? "stagecraft: " : "") << render(diagnostic) << '\n';
}

// Reports a bug of ours as such, whatever the command.
int report_bug(const std::exception& error, const std::vector<std::string>& words) {
  std::string line = "stagecraft";
  for (const std::string& word : words) line += " " + word;
  std::cerr << "stagecraft: internal error: " << error.what() << '\n'
            << "  this is a bug of ours. Please report it with:  " << line
            << "    version " STAGECRAFT_VERSION "\n";
  if (wants_json(words)) {
    std::cout << render_json({{.code = "internal", .message = error.what(), .hint = "this is a bug of ours"}})
              << '\n';
  }
  return kOurBug;
}

int answer(const std::vector<std::string>& words, const char* invoked, const RunCommand& run) {
  try {
    return dispatch(words, invoked, run);
  } catch (const UsageError& error) {
    report({{.code = "usage", .message = error.what(), .hint = error.hint()}}, words);
    return kWrongInput;
  } catch (const ScenarioError& error) {  // of a file that a command writes
    report(error.diagnostics(), words);
    return kWrongInput;
  } catch (const std::exception& error) {
    return report_bug(error, words);
  }
}

}  // namespace

// A result that could not be written is an error: a full disk.
int run_program(const std::vector<std::string>& words, const char* invoked, const RunCommand& run) {
  const int code = answer(words, invoked, run);
  if (std::cout.flush()) return code;
  std::cerr << "stagecraft: error: standard output could not be written\n";
  return std::max<int>(code, kWrongInput);
}

}  // namespace stagecraft
