// Handles Ctrl-C: finished results are kept, and the program prints how to continue.
#pragma once

namespace stagecraft {

inline constexpr int kBySignal = 128;  // and the signal: the exit code of who is stopped

// While one lives, SIGINT and SIGTERM are noted and end nothing; a second one ends the program as ever.
class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();
  // The signal that came; 0: none.
  [[nodiscard]] static int signal();
};

}  // namespace stagecraft
