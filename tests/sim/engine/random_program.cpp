#include "tests/sim/engine/random_program.hpp"

#include <random>
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

}  // namespace stagecraft
