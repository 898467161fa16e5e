#include "tests/sim/engine/random_program.hpp"

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace stagecraft {

Program random_program(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  ProgramBuilder builder;
  const std::uint64_t resources = 1 + below(12);
  for (std::uint64_t r = 0; r < resources; ++r)
    builder.add_resource({.kind = below(3) == 0 ? ResourceKind::kConcurrent : ResourceKind::kStream,
                          .rank = static_cast<std::int32_t>(r),
                          .name = "resource"});
  const LabelId label = builder.add_label({.name = "task", .parts = {}});

  const std::uint64_t tasks = below(201), longest = std::uint64_t{1} << below(8), edges_per_task = below(4);
  std::vector<ProgramBuilder::Handle> handles;
  for (std::uint64_t i = 0; i < tasks; ++i) {
    const ResourceId resource(static_cast<std::uint32_t>(below(resources)));
    const Duration duration(static_cast<std::int64_t>(below(longest)));  // zero whenever longest is one
    handles.push_back(builder.add_task(resource, duration, label, static_cast<std::int32_t>(i)));
    for (std::uint64_t e = 0; i > 0 && e < edges_per_task; ++e)
      builder.add_dependency(handles[below(i)], handles[i]);
    const auto bytes = static_cast<std::int64_t>(below(100));
    if (below(2) == 0) builder.add_memory(handles[i], Bytes(bytes), Bytes(-bytes));
  }
  return std::move(builder).build();
}

namespace {

class FlowProgram {
 public:
  explicit FlowProgram(std::uint64_t seed) : random_(seed) {}

  Program build(bool loads) && {
    const std::uint64_t resources = 1 + below(6), links = 1 + below(8), tasks = below(61);
    for (std::uint64_t r = 0; r < resources; ++r)
      builder_.add_resource({.kind = below(2) == 0 ? ResourceKind::kConcurrent : ResourceKind::kStream,
                             .rank = static_cast<std::int32_t>(r / 3),
                             .name = "resource",
                             .yields = loads && r % 3 == 0});
    for (std::uint64_t l = 0; l < links; ++l)
      builder_.add_link({.name = "link", .capacity = Bandwidth(1e9 * static_cast<double>(1 + below(9)))});
    for (std::uint32_t i = 0; i < 3; ++i)
      labels_[i] = builder_.add_label({.name = "task " + std::to_string(i), .parts = {}});
    for (std::uint64_t i = 0; i < tasks; ++i) {
      const auto resource = static_cast<std::uint32_t>(below(resources));
      add_task(ResourceId(resource), links);
      if (loads && resource % 3 != 0 && below(3) == 0)
        builder_.add_load(handles_.back(), static_cast<double>(below(9)) / 8);
    }
    return std::move(builder_).build();
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  void add_task(ResourceId resource, std::uint64_t links) {
    const Duration duration(static_cast<std::int64_t>(below(std::uint64_t{1} << below(21))));
    const auto task = builder_.add_task(resource, duration, labels_[below(3)]);
    if (!handles_.empty() && below(2) == 0) builder_.add_dependency(handles_[below(handles_.size())], task);
    handles_.push_back(task);
    if (below(5) == 0) return;
    std::vector<LinkUse> uses;
    for (std::uint32_t l = 0; l < links; ++l)
      if (below(3) == 0)
        uses.push_back(
            {.link = LinkId(l), .flows = below(2) == 0 ? 1 : 0.125 * static_cast<double>(1 + below(16))});
    const Duration latency = below(2) == 0 ? Duration::zero() : duration / 4;
    builder_.add_flow(task, duration - latency, Bandwidth(1e9 * static_cast<double>(1 + below(9))),
                      builder_.add_route(std::move(uses)));
  }

  std::mt19937_64 random_;
  ProgramBuilder builder_;
  std::vector<ProgramBuilder::Handle> handles_;
  LabelId labels_[3];
};

}  // namespace

Program random_flow_program(std::uint64_t seed, bool loads) {
  return FlowProgram(seed).build(loads);
}

}  // namespace stagecraft
