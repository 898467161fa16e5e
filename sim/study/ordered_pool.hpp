// Work on many threads, results in order: the same sequence whatever the number of threads.
//
// Workers take the next open job. The calling thread passes results on in the order of the jobs, as soon as
// they are ready. Workers run at most `window` jobs ahead, so that a slow job delays a bounded number of
// finished ones.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace stagecraft {

struct OrderedPool {
  using Work = std::function<std::string(std::size_t job)>;  // never throws

  int threads = 1;
  std::size_t window = 4'096;
  std::function<Work()> make_work;                                  // once on each thread
  std::function<bool(std::size_t job, const std::string&)> accept;  // false: stop
  std::function<bool()> tick = [] { return true; };                 // now and then; false: stop
  std::chrono::milliseconds tick_every = std::chrono::milliseconds(50);

  // Runs until all jobs are accepted or accept() stops it. Running jobs then end, and their results are
  // dropped.
  void run(std::span<const std::size_t> jobs) const;
};

}  // namespace stagecraft
