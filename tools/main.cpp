// The program `stagecraft`.
#include <cstdlib>
#include <ostream>

#include "tools/program.hpp"

int main(int argc, char** argv) {
  using namespace stagecraft;
  return run_program({argv + 1, argv + argc}, argv[0],
                     [](const CommandSpec& command, const Arguments& arguments, Session& session) {
                       // Nothing is taken down: threads that still run use it.
                       session.leave = [&session](int code) {
                         session.out << std::flush;
                         session.err << std::flush;
                         std::_Exit(code);
                       };
                       return command.run(arguments, session);
                     });
}
