// Schedules of the default space that the software of a scenario runs.
//
//   A preset of scenarios/software/ lists them; what it does not list is left aside. Nothing is left aside
//   where the preset says nothing, nor of orders that somebody asked for: the scenario's `search`, --vary, or
//   --fix with an order of the scenario's own.
//   One stage needs no order: it is tried by those that run, else by the first of the space without chunks.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "sim/search/search_space.hpp"

namespace stagecraft {

struct RunOrders {
  bool stages = true;     // plans of several stages by the scenario's order
  bool one_stage = true;  // of one
};

[[nodiscard]] RunOrders run_orders(const Scenario& scenario, const SearchSpace& space);

}  // namespace stagecraft
