// A small system for tests, written the way one would draw it: resources by letter, tasks by name.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/engine/engine.hpp"

namespace stagecraft {

class System {
 public:
  using Handle = ProgramBuilder::Handle;

  ResourceId stream(const std::string& name) { return add(ResourceKind::kStream, name); }
  ResourceId concurrent(const std::string& name) { return add(ResourceKind::kConcurrent, name); }
  // A stream of the same rank that yields to loads.
  ResourceId yielding(const std::string& name) {
    return builder_.add_resource({.kind = ResourceKind::kStream, .rank = 0, .name = name, .yields = true});
  }

  // Tasks are to be added resource by resource, so that a handle's number is the TaskId.
  TaskId task(ResourceId resource, Duration duration, const std::string& name) {
    const Handle handle =
        builder_.add_task(resource, duration, builder_.add_label({.name = name, .parts = {}}));
    return TaskId(handle.value());
  }
  void edge(TaskId before, TaskId after) {
    builder_.add_dependency(Handle(before.value()), Handle(after.value()));
  }
  void memory(TaskId task, Bytes at_start, Bytes at_end) {
    builder_.add_memory(Handle(task.value()), at_start, at_end);
  }

  LinkId link(const std::string& name, Bandwidth capacity) {
    return builder_.add_link({.name = name, .capacity = capacity});
  }
  RouteId route(std::vector<LinkUse> uses) { return builder_.add_route(std::move(uses)); }
  // The last `transfer` of the task moves bytes.
  void flow(TaskId task, Duration transfer, Bandwidth rate, RouteId route) {
    builder_.add_flow(Handle(task.value()), transfer, rate, route);
  }
  void load(TaskId task, double share) { builder_.add_load(Handle(task.value()), share); }
  void speed(Duration from, ResourceId resource, double speed) {
    builder_.add_speed_change({.time = from, .resource = resource, .speed = speed});
  }
  void capacity(Duration from, LinkId link, Bandwidth capacity) {
    builder_.add_link_change({.time = from, .link = link, .capacity = capacity});
  }

  Program build() { return std::move(builder_).build(); }

 private:
  ResourceId add(ResourceKind kind, const std::string& name) {
    return builder_.add_resource({.kind = kind, .rank = 0, .name = name});
  }

  ProgramBuilder builder_;
};

}  // namespace stagecraft
