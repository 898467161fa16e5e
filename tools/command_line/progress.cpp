#include "tools/command_line/progress.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <ostream>
#include <string>

#include "base/text.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

std::string spoken(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 90) return fmt::format("{} s", whole);
  if (whole < 5400) return fmt::format("{} min", (whole + 30) / 60);
  return fmt::format("{:.1f} h", static_cast<double>(whole) / 3600);
}

}  // namespace

ProgressLine::ProgressLine(std::ostream& err, bool terminal, std::size_t total, std::string_view noun)
    : err_(err), terminal_(terminal), total_(total), noun_(noun) {}

void ProgressLine::update(std::size_t done) {
  const auto now = Clock::now();
  if (now - begun_ < 1s || done == 0 || (terminal_ && now - last_ < 100ms)) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - begun_).count();
  const double rate = static_cast<double>(done) / seconds;
  const std::string line =
      fmt::format("{} of {} {}, {:.3g}/s, {} left", with_thousands(static_cast<std::int64_t>(done)),
                  with_thousands(static_cast<std::int64_t>(total_)), noun_, rate,
                  spoken(static_cast<double>(total_ - done) / rate));
  if (terminal_) {
    err_ << "\r\x1b[K" << line << std::flush;
    shown_ = true;
    return;
  }
  const std::size_t tenth = done * 10 / total_;
  if (now - begun_ < 30s || tenth <= tenth_ || tenth == 10) return;
  tenth_ = tenth;
  err_ << line << '\n' << std::flush;
}

void ProgressLine::finish() {
  if (shown_) err_ << "\r\x1b[K" << std::flush;
  shown_ = false;
}

}  // namespace stagecraft
