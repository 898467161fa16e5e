// What is known of the options of Megatron-LM, over its eras, as tables.
//
// The list is not complete and cannot be: many options are made from dataclasses, forks add their own. So an
// option that no row knows is a warning, and never ignored.
//
//   source  NVIDIA/Megatron-LM @000c4ac (2025) megatron/training/arguments.py; for the names that are gone
//           @0012901 (2022) megatron/arguments.py, and the argument dump of 2021 in tests/data/megatron/.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace stagecraft {

enum class MegatronFlagKind : std::uint8_t {
  kRead,         // the importer reads it; `text` says when it has nothing to say
  kAside,        // changes neither time nor memory; `text` is what it is about
  kNotModelled,  // changes time or memory, and the simulator does not know how: a warning, where it is on
  kRefused,      // makes another model of it: an error, where it is on
};

struct MegatronFlag {
  std::string_view name;  // as in the dump; a trailing '*' stands for any rest
  MegatronFlagKind kind;
  std::string_view text;
  std::string_view harmless = {};  // "fp32|torch.float32": values that are as good as off
};

// The first row that fits, whole names before patterns; nullptr if there is none.
[[nodiscard]] const MegatronFlag* find_megatron_flag(std::string_view name);
[[nodiscard]] std::span<const MegatronFlag> megatron_flags();

// Options whose value in the dump has another name or the opposite sense: --disable-bias-linear is
// add_bias_linear False.
struct MegatronSpelling {
  std::string_view option;  // underscores for dashes
  std::string_view name;
  std::string_view value;  // empty: the option's own
};
[[nodiscard]] std::span<const MegatronSpelling> megatron_spellings();

// Names of the past with what replaced them.
struct MegatronDeadName {
  std::string_view name;
  std::string_view now;
  bool same_value = false;  // else the importer knows what the old value means
};
[[nodiscard]] std::span<const MegatronDeadName> megatron_dead_names();

// Names that only Megatron-LM before 2022 has.
[[nodiscard]] bool is_of_2021(std::string_view name);
// Names that it got later; a dump has all names of its time.
[[nodiscard]] bool is_newer_than_2021(std::string_view name);

}  // namespace stagecraft
