// A note on messages that are under way together from one pipeline rank to the same other.
//
// A closed-form message takes as long as it does alone, whatever else is on its link. Where messages outlast
// the passes between them they would queue or share the link, and the iteration is longer than predicted.
#pragma once

#include <optional>
#include <string>

#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

// nullopt where no two are, and on shared links. `ranks`: of the pipeline, of which the program may have copies.
//   requires  `timeline` of `program`.
[[nodiscard]] std::optional<std::string> word_on_crowded_messages(const Program& program,
                                                                  const Timeline& timeline, int ranks);

}  // namespace stagecraft
