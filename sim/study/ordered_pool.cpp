#include "sim/study/ordered_pool.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace stagecraft {
namespace {

class Desk {
 public:
  Desk(std::size_t jobs, std::size_t window) : jobs_(jobs), window_(std::max<std::size_t>(window, 1)) {}

  // The next job for a worker; nullopt: there is none, or all shall stop.
  std::optional<std::size_t> take() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return stopped_ || next_ >= jobs_ || next_ < handed_on_ + window_; });
    if (stopped_ || next_ >= jobs_) return std::nullopt;
    return next_++;
  }

  void put(std::size_t job, std::string result) {
    const std::lock_guard lock(mutex_);
    done_.emplace(job, std::move(result));
    if (job == handed_on_) ready_.notify_one();
  }

  // The result of the next job in order; nullopt when it is not there in time.
  std::optional<std::string> wait(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    if (!ready_.wait_for(lock, limit, [&] { return done_.contains(handed_on_); })) return std::nullopt;
    auto result = done_.extract(handed_on_++);
    room_.notify_all();
    return std::move(result.mapped());
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    room_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable room_;   // wakes workers: a job may be taken
  std::condition_variable ready_;  // wakes the caller: the next result is ready
  std::map<std::size_t, std::string> done_;
  std::size_t jobs_, window_;
  std::size_t next_ = 0, handed_on_ = 0;
  bool stopped_ = false;
};

}  // namespace

void OrderedPool::run(std::span<const std::size_t> jobs) const {
  Desk desk(jobs.size(), window);
  const auto worker = [&] {
    const Work work = make_work();
    while (const std::optional<std::size_t> at = desk.take()) desk.put(*at, work(jobs[*at]));
  };
  std::vector<std::jthread> pool;
  // Also when accept() throws or a thread cannot be made, so that workers do not wait forever.
  struct Release {
    Desk& desk;
    ~Release() { desk.stop(); }
  } const release{desk};
  const std::size_t wanted = std::min(static_cast<std::size_t>(std::max(threads, 1)), jobs.size());
  for (std::size_t i = 0; i < wanted; ++i) pool.emplace_back(worker);
  bool go_on = true;
  auto last_tick = std::chrono::steady_clock::now();
  for (std::size_t at = 0; go_on && at < jobs.size();) {
    if (const std::optional<std::string> result = desk.wait(tick_every)) go_on = accept(jobs[at++], *result);
    const auto now = std::chrono::steady_clock::now();
    if (now - last_tick < tick_every) continue;
    last_tick = now;
    go_on = go_on && tick();
  }
}

}  // namespace stagecraft
