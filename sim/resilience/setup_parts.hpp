// What the set-ups of several policies have in common; for set_up() alone (policy_setup.hpp).
//
//   worker  what Bamboo and ReCycle call a node: it holds one stage, of several replicas where a stage is
//           smaller than a node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/units.hpp"
#include "sim/goodput/policy.hpp"
#include "sim/resilience/goodput_job.hpp"
#include "sim/resilience/policy_setup.hpp"

namespace stagecraft {

// Policies with a file of their own. nullopt with diagnostics, as set_up().
[[nodiscard]] std::optional<GoodputSetup> set_up_oobleck(const SetupRequest& request,
                                                         Diagnostics& diagnostics);
// Bamboo and ReCycle.
[[nodiscard]] std::optional<GoodputSetup> set_up_redundant(const SetupRequest& request,
                                                           Diagnostics& diagnostics);
// A published evaluation: Oobleck, Varuna or Bamboo with a table of throughputs.
[[nodiscard]] std::optional<GoodputSetup> set_up_replay(const SetupRequest& request,
                                                        Diagnostics& diagnostics);

// Samples of a step whose time is from the table of throughputs.
[[nodiscard]] std::int64_t samples_of_table(const SetupRequest& request);
// The step of the whole job: as simulated, or the best row of the table. throws InternalError on a table that
// does not train.
[[nodiscard]] ShapedStep full_step(const SetupRequest& request);
// The reconfiguration of Oobleck and ReCycle after a change: the whole of it as given, else processes and
// groups without the state.
[[nodiscard]] Duration reconfigure_time(const SetupRequest& request);

// Nodes of a pipeline of workers.
[[nodiscard]] int pipeline_nodes(const GoodputJob& job);
// Does each data replica hold all states? So many of them are lost as one, and hold them together.
[[nodiscard]] bool replicas_are_copies(const GoodputJob& job, int side_by_side);
// The setting that keeps states from being on several nodes: "zero_stage 1 shards each state over 2 ranks".
[[nodiscard]] std::string what_keeps_states_apart(const GoodputJob& job);
// Notes where replicas are no full copies, for policies whose other replicas continue without one: the costs
// that are left out.
[[nodiscard]] std::vector<std::string> notes_on_copies(const SetupRequest& request, int side_by_side);

}  // namespace stagecraft
