// `failures:` as YAML that reads back to an equal spec.
#pragma once

#include "sim/goodput/failure_spec.hpp"
#include "sim/scenario/yaml_emitter.hpp"

namespace stagecraft {

// The entries of the section, every default written out.
void print_failures(Emitter& out, const FailureSpec& spec);

}  // namespace stagecraft
