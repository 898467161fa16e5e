// The `stagecraft` command line: finds the command, runs it, and turns what went wrong into words and an exit
// code.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/diagnostic.hpp"
#include "base/text.hpp"
#include "tools/command_line.hpp"

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
  return UsageError(fmt::format("'{}' is not a command", word), suggest(word, names));
}

int print_completion(const std::vector<std::string>& words) {
  if (words.size() != 2 || words[1] != "bash") {
    throw UsageError("--print-completion takes the name of a shell", "bash");
  }
  std::cout << bash_completion();
  return kDone;
}

int dispatch(const std::vector<std::string>& words, const char* invoked) {
  if (words.empty() || words[0] == "--help" || words[0] == "help") {
    (words.empty() ? std::cerr : std::cout) << overview_help();
    return words.empty() ? kWrongInput : kDone;
  }
  if (words[0] == "--version") return std::cout << "stagecraft " STAGECRAFT_VERSION "\n", kDone;
  if (words[0] == "--print-completion") return print_completion(words);
  const CommandSpec* command = find_command(words[0]);
  if (command == nullptr) throw unknown_command(words[0]);
  const Arguments arguments = parse_arguments(*command, {words.begin() + 1, words.end()});
  if (arguments.has("help")) return std::cout << command_help(*command), kDone;
  const std::filesystem::path self = own_path(invoked);
  const std::optional<DataDirectory> data = DataDirectory::find(self);
  if (!data) {
    throw UsageError("the models, nodes and profiles that belong to the program are not beside it",
                     "set STAGECRAFT_DATA to the folder that holds scenarios/ and calibrate/");
  }
  Session session{.out = std::cout, .err = std::cerr, .data = *data, .executable = self};
  return command->run(arguments, session);
}

int report_usage(const UsageError& error, const std::vector<std::string>& words) {
  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  if (json) {
    std::cout << render_json({Diagnostic{.code = "usage",
                                         .where = {},
                                         .path = "",
                                         .message = error.what(),
                                         .hint = error.hint(),
                                         .notes = {}}})
              << '\n';
    return kWrongInput;
  }
  std::cerr << "stagecraft: error: " << error.what() << '\n';
  if (!error.hint().empty()) std::cerr << "  hint: " << error.hint() << '\n';
  return kWrongInput;
}

int guarded(const std::vector<std::string>& words, const char* invoked) {
  try {
    const int code = dispatch(words, invoked);
    if (!std::cout.flush()) {
      std::cerr << "stagecraft: error: standard output could not be written\n";
      return kWrongInput;
    }
    return code;
  } catch (const UsageError& error) {
    return report_usage(error, words);
  } catch (const ScenarioError& error) {
    std::cerr << error.what() << '\n';
    return kWrongInput;
  } catch (const std::exception& error) {
    std::string line = "stagecraft";
    for (const std::string& word : words) line += " " + word;
    std::cerr << "stagecraft: internal error: " << error.what() << '\n'
              << "  this is a bug of ours. Please report it with:  " << line
              << "    version " STAGECRAFT_VERSION "\n";
    return kOurBug;
  }
}

}  // namespace
}  // namespace stagecraft

int main(int argc, char** argv) {
  return stagecraft::guarded({argv + 1, argv + argc}, argv[0]);
}
