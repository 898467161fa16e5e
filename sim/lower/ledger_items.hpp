// Memory of a rank at one moment, by class and name: the rows of a memory ledger.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/lower/memory_ledger.hpp"

namespace stagecraft {

// Keeps every item where `itemised`, otherwise only the sums by class.
class LedgerItems {
 public:
  explicit LedgerItems(bool itemised = true) : itemised_(itemised) {}

  void add(MemoryClass kind, std::string_view name, Bytes size) {
    if (size == Bytes(0)) return;
    sums_[static_cast<std::size_t>(kind)] += size;
    if (!itemised_) return;
    const auto same = [&](const MemoryItem& item) { return item.kind == kind && item.name == name; };
    const auto known = std::find_if(items_.begin(), items_.end(), same);
    if (known != items_.end()) {
      known->size += size;
    } else {
      items_.push_back({.kind = kind, .name = std::string(name), .size = size});
    }
  }

  [[nodiscard]] const MemorySums& sums() const { return sums_; }
  [[nodiscard]] Bytes of(MemoryClass kind) const { return sums_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] Bytes allocated() const {
    return std::accumulate(sums_.begin(), sums_.end(), Bytes(0)) - of(MemoryClass::kOverhead);
  }

  [[nodiscard]] StageMemory stage(int rank) && {
    return {.stage = rank, .sums = sums_, .items = std::move(items_)};
  }

 private:
  bool itemised_;
  MemorySums sums_{};
  std::vector<MemoryItem> items_;
};

}  // namespace stagecraft
