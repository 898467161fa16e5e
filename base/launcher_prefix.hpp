// What launchers of parallel jobs put before each line of a process's output.
#pragma once

#include <string_view>

namespace stagecraft {

// The line behind "0: " (srun --label), "[1,0]<stdout>:" (mpirun --tag-output), "[2026-01-02 03:04:05] ",
// "12:", and several of them.
[[nodiscard]] std::string_view without_launcher_prefix(std::string_view line);

}  // namespace stagecraft
