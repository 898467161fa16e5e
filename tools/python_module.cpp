// The part of the Python module `stagecraft` that is C++: a command in, its JSON out.
//
// Whatever Python asks for is a command of the command line with --json, run in this process: one program,
// one answer, to the bit. python/stagecraft/__init__.py makes arguments of it and dictionaries of the answer.
//
// Python's lock is released while a command runs; no Python object is touched meanwhile.
#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <exception>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/scenario/scenario.hpp"
#include "tools/commands/commands.hpp"

namespace stagecraft {
namespace {

struct Answer {
  int code = kDone;
  std::string out;  // JSON documents, one a line
  std::string err;  // words for people; of a bug of ours what went wrong
};

Answer refused(Diagnostic diagnostic) {
  return {.code = kWrongInput, .out = render_json({std::move(diagnostic)}) + "\n", .err = {}};
}

Answer run(const CommandSpec& command, const std::vector<std::string>& words, DataDirectory data) {
  std::ostringstream out, err;
  Session session{.out = out, .err = err, .data = std::move(data)};
  try {
    const int code = command.run(parse_arguments(command, commands(), words), session);
    return {.code = code, .out = std::move(out).str(), .err = std::move(err).str()};
  } catch (const UsageError& error) {
    return refused({.code = "usage", .message = error.what(), .hint = error.hint()});
  } catch (const ScenarioError& error) {
    return {.code = kWrongInput, .out = render_json(error.diagnostics()) + "\n", .err = {}};
  } catch (const std::exception& error) {
    return {.code = kOurBug, .out = {}, .err = error.what()};
  }
}

// `texts` stand in place of files; `module` is where this module is, beside which the data are.
Answer call(const std::string& name, const std::vector<std::string>& words,
            std::map<std::string, std::string> texts, const std::string& module) {
  const CommandSpec* command = find_command(name);
  if (command == nullptr)
    return refused({.code = "usage", .message = fmt::format("'{}' is not a command", name)});
  std::optional<DataDirectory> data = DataDirectory::find(module);
  if (!data) return refused(DataDirectory::missing("the module"));
  data->texts = std::move(texts);
  return run(*command, words, *std::move(data));
}

}  // namespace
}  // namespace stagecraft

PYBIND11_MODULE(_core, module) {
  module.doc() = "A command of the program, run in this process.";
  module.attr("__version__") = STAGECRAFT_VERSION;
  module.def(
      "call",
      [](const std::string& name, const std::vector<std::string>& words,
         const std::map<std::string, std::string>& texts, const std::string& place) {
        stagecraft::Answer answer;
        {
          const pybind11::gil_scoped_release released;
          answer = stagecraft::call(name, words, texts, place);
        }
        return pybind11::make_tuple(answer.code, answer.out, answer.err);
      },
      pybind11::arg("name"), pybind11::arg("words"), pybind11::arg("texts"), pybind11::arg("place"));
}
