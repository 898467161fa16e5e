#include "base/for_each_index.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/ceil_div.hpp"
#include "base/check.hpp"

namespace stagecraft {

void for_each_index(const IndexLoop& loop,
                    const std::function<void(std::size_t thread, std::size_t index)>& work) {
  SC_CHECK(loop.step > 0, "a thread takes at least one index at a time");
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stop = false;
  std::map<std::size_t, std::exception_ptr> failures;  // by the first index of the step
  std::mutex mutex;
  // Steps are taken in order and a step that is taken is run: so the least index that fails is among them.
  const auto run = [&](std::size_t thread) {
    while (!stop) {
      const std::size_t begin = next.fetch_add(loop.step);
      if (begin >= loop.count) return;
      try {
        for (std::size_t i = begin; i < std::min(begin + loop.step, loop.count); ++i) work(thread, i);
        if (thread == 0 && !loop.tick(std::min(next.load(), loop.count))) stop = true;
      } catch (...) {
        const std::lock_guard lock(mutex);
        failures.emplace(begin, std::current_exception());
        stop = true;
      }
    }
  };
  std::vector<std::jthread> others;
  const std::size_t useful =
      std::min(static_cast<std::size_t>(std::max(loop.threads, 1)), ceil_div(loop.count, loop.step));
  for (std::size_t thread = 1; thread < useful; ++thread) others.emplace_back(run, thread);
  run(0);
  others.clear();  // joins
  if (!failures.empty()) std::rethrow_exception(failures.begin()->second);
}

}  // namespace stagecraft
