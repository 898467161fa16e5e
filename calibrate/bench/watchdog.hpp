// Calls for help when one measurement takes far longer than it should: a kernel or a library that hangs must
// not cost the rest of an unattended run.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace stagecraft {

class Watchdog {
 public:
  // on_alarm runs in a thread of its own, once, and should end the process.
  explicit Watchdog(std::function<void()> on_alarm)
      : on_alarm_(std::move(on_alarm)), thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void expect_within(double seconds) {
    set(std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                               std::chrono::duration<double>(seconds)));
  }
  void rest() { set(std::nullopt); }

 private:
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;

  void set(Deadline deadline) {
    {
      const std::lock_guard lock(mutex_);
      deadline_ = deadline;
    }
    changed_.notify_one();
  }
  void watch() {
    std::unique_lock lock(mutex_);
    while (!done_) {
      if (!deadline_) {
        changed_.wait(lock);
      } else if (std::chrono::steady_clock::now() >= *deadline_) {
        deadline_.reset();
        lock.unlock();
        on_alarm_();
        lock.lock();
      } else {
        const auto until = *deadline_;
        changed_.wait_until(lock, until);
      }
    }
  }

  std::function<void()> on_alarm_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Deadline deadline_;
  bool done_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace stagecraft
