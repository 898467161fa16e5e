#include "sim/goodput/oobleck/reconfigure.hpp"

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

struct Member {
  int number = 0;  // number of the pipeline before the failure
  std::vector<int> nodes = {};
  bool changed = false;
  [[nodiscard]] int size() const { return static_cast<int>(nodes.size()); }
};

class Reconfigurer {
 public:
  Reconfigurer(Pipelines pipelines, std::span<const int> failed, int min_nodes) : min_nodes_(min_nodes) {
    const auto is_failed = [&](int node) { return std::ranges::find(failed, node) != failed.end(); };
    int number = 0;
    for (std::vector<int>& nodes : pipelines) {
      const bool hit = std::erase_if(nodes, is_failed) > 0;
      if (nodes.empty())
        out_.events.push_back({.pipeline = number, .change = PipelineChange::kGone});
      else if (hit && static_cast<int>(nodes.size()) >= min_nodes)
        out_.events.push_back({.pipeline = number, .change = PipelineChange::kSimple});
      if (!nodes.empty()) members_.push_back({.number = number, .nodes = std::move(nodes), .changed = hit});
      ++number;
    }
  }

  Reconfiguration run() {
    if (!borrow()) merge();
    for (Member& member : members_) {
      if (member.changed) std::ranges::sort(member.nodes);
      out_.pipelines.push_back(std::move(member.nodes));
    }
    std::ranges::sort(out_.pipelines, [](const auto& a, const auto& b) {
      return std::tuple(a.size(), a.front()) < std::tuple(b.size(), b.front());
    });
    if (out_.pipelines.empty()) out_.recoverable = false;
    return std::move(out_);
  }

 private:
  // Borrows nodes for short pipelines. False when no pipeline has more than n0 nodes.
  bool borrow() {
    for (Member& taker : members_) {
      while (taker.size() < min_nodes_) {
        Member& donor = last_largest();
        if (donor.size() <= min_nodes_) return false;
        while (donor.size() > min_nodes_ && taker.size() < min_nodes_) move_last(donor, taker);
      }
    }
    return true;
  }

  Member& last_largest() {
    Member* largest = &members_.front();
    for (Member& member : members_)
      if (member.size() >= largest->size()) largest = &member;
    return *largest;
  }

  void move_last(Member& donor, Member& taker) {
    const int node = donor.nodes.back();
    donor.nodes.pop_back();
    taker.nodes.push_back(node);
    donor.changed = taker.changed = true;
    out_.events.push_back(
        {.pipeline = taker.number, .change = PipelineChange::kBorrow, .node = node, .other = donor.number});
    out_.events.push_back(
        {.pipeline = donor.number, .change = PipelineChange::kLend, .node = node, .other = taker.number});
  }

  void merge() {
    std::deque<Member> unmerged;
    std::deque<Member> rest;
    for (Member& member : members_)
      (member.size() < min_nodes_ ? unmerged : rest).push_back(std::move(member));
    while (!unmerged.empty()) {
      Member taker = std::move(unmerged.front());
      unmerged.pop_front();
      while (taker.size() < min_nodes_) {
        std::deque<Member>& from = unmerged.empty() ? rest : unmerged;
        if (from.empty()) {
          out_.recoverable = false;
          break;
        }
        absorb(taker, from.front());
        from.pop_front();
      }
      rest.push_back(std::move(taker));
    }
    members_.assign(std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
  }

  void absorb(Member& taker, const Member& taken) {
    taker.changed = true;
    taker.nodes.insert(taker.nodes.end(), taken.nodes.begin(), taken.nodes.end());
    out_.events.push_back(
        {.pipeline = taken.number, .change = PipelineChange::kMerge, .other = taker.number});
  }

  int min_nodes_;
  std::vector<Member> members_;
  Reconfiguration out_;
};

}  // namespace

Reconfiguration reconfigure(Pipelines pipelines, std::span<const int> failed, int min_nodes) {
  SC_CHECK(min_nodes >= 1, "a pipeline has nodes");
  return Reconfigurer(std::move(pipelines), failed, min_nodes).run();
}

}  // namespace stagecraft
