// The commands: arguments in, an exit code out; answers to session.out, everything else to session.err.
#pragma once

#include <span>
#include <string_view>

#include "tools/command_line/command_line.hpp"

namespace stagecraft {

// All of them, as the program's help lists them.
[[nodiscard]] std::span<const CommandSpec> commands();
[[nodiscard]] const CommandSpec* find_command(std::string_view name);  // nullptr where there is none

int run_command(const Arguments& arguments, Session& session);
int check_command(const Arguments& arguments, Session& session);
int compare_command(const Arguments& arguments, Session& session);
int diff_command(const Arguments& arguments, Session& session);
int explain_command(const Arguments& arguments, Session& session);
int goodput_command(const Arguments& arguments, Session& session);
int merge_command(const Arguments& arguments, Session& session);
int replay_command(const Arguments& arguments, Session& session);
int search_command(const Arguments& arguments, Session& session);
int sweep_command(const Arguments& arguments, Session& session);
int memory_command(const Arguments& arguments, Session& session);
int schedule_command(const Arguments& arguments, Session& session);
int topology_command(const Arguments& arguments, Session& session);
int validate_command(const Arguments& arguments, Session& session);
int doctor_command(const Arguments& arguments, Session& session);
int calibrate_command(const Arguments& arguments, Session& session);
int import_command(const Arguments& arguments, Session& session);

}  // namespace stagecraft
