#include "sim/engine/stream.hpp"

namespace stagecraft {

Streams::Streams(RunState& state) : state_(&state) {
  const Program& program = state.program;
  streams_.reserve(program.resources.size());
  for (std::uint32_t r = 0; r < program.resources.size(); ++r)
    streams_.push_back({.head = TaskId(program.resource_begin[r]),
                        .end = TaskId(program.resource_begin[r + 1]),
                        .exclusive = program.resources[ResourceId(r)].kind == ResourceKind::kStream});
}

void Streams::restart(ResourceId resource) {
  streams_[resource].head = TaskId(state_->program.resource_begin[resource.index()]);
}

}  // namespace stagecraft
