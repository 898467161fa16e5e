// Calls a function for every index below a count, on several threads.
//
//   order   a thread takes the next open indices when it is free, in ascending order. Results must depend on
//           the index alone.
//   throws  what a call throws; of several that of the least index, on any number of threads. No further
//           indices are taken then.
#pragma once

#include <cstddef>
#include <functional>

namespace stagecraft {

struct IndexLoop {
  std::size_t count = 0;
  int threads = 1;       // the calling one and threads - 1 others; less than 1 is 1
  std::size_t step = 1;  // number of indices that a thread takes at a time
  // Called on the calling thread after each of its steps with how many indices are taken; false: take no more.
  std::function<bool(std::size_t taken)> tick = [](std::size_t) { return true; };
};

//   work  gets the number of its thread, below max(threads, 1): threads may keep a state each.
void for_each_index(const IndexLoop& loop,
                    const std::function<void(std::size_t thread, std::size_t index)>& work);

}  // namespace stagecraft
