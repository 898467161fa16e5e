// Membership and position of tasks in an ascending list: one bit per task and a count per 64 of them. A query
// about any of millions of tasks is answered from the cache.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/program/program.hpp"

namespace stagecraft {

class TaskSubset {
 public:
  // items: of a type with a member `task`, ascending by it, each task at most once.
  template <class Item>
  TaskSubset(const std::vector<Item>& items, std::size_t tasks) {
    if (items.empty()) return;
    blocks_.resize(tasks / 64 + 1);
    for (const Item& item : items)
      blocks_[item.task.index() / 64].members |= std::uint64_t{1} << item.task.index() % 64;
    std::uint32_t before = 0;
    for (Block& block : blocks_) {
      block.before = before;
      before += static_cast<std::uint32_t>(std::popcount(block.members));
    }
  }

  // The place of the task in the list; nullopt when it is not there.
  [[nodiscard]] std::optional<std::uint32_t> find(TaskId task) const {
    if (blocks_.empty()) return std::nullopt;
    const Block& block = blocks_[task.index() / 64];
    const std::uint64_t bit = std::uint64_t{1} << task.index() % 64;
    if ((block.members & bit) == 0) return std::nullopt;
    return block.before + static_cast<std::uint32_t>(std::popcount(block.members & (bit - 1)));
  }

 private:
  struct Block {
    std::uint64_t members = 0;
    std::uint32_t before = 0;  // items of the blocks before
  };
  std::vector<Block> blocks_;
};

}  // namespace stagecraft
