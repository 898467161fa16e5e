// The program `stagecraft`.
#include "tools/program.hpp"

int main(int argc, char** argv) {
  using namespace stagecraft;
  return run_program({argv + 1, argv + argc}, argv[0],
                     [](const CommandSpec& command, const Arguments& arguments, Session& session) {
                       return command.run(arguments, session);
                     });
}
