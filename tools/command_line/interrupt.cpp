#include "tools/command_line/interrupt.hpp"

#include <atomic>
#include <csignal>

namespace stagecraft {
namespace {

// A handler can reach nothing but what is static. It runs on any of the threads, and others read what it notes.
std::atomic<int> noted = 0;
static_assert(std::atomic<int>::is_always_lock_free, "as handlers need it");

void note(int signal) {
  noted = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt() {
  noted = 0;
  std::signal(SIGINT, note);
  std::signal(SIGTERM, note);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

int Interrupt::signal() {
  return noted;
}

}  // namespace stagecraft
