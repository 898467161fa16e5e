// Tables of the options of Megatron-LM, over its eras.
//
// The list is not complete and cannot be: many options are made from dataclasses, forks add their own. So an
// option that no row knows is a warning, and never ignored; an error where its name says that it changes the
// model. A dump has the defaults of everything, used or not, and there it is a warning.
//
//   source  NVIDIA/Megatron-LM @000c4ac (2025) megatron/training/arguments.py; for the names that are gone
//           @0012901 (2022) megatron/arguments.py, and the argument dump of 2021 in tests/data/megatron/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace stagecraft {

enum class MegatronFlagKind : std::uint8_t {
  kRead,         // the importer reads it; `text` says when it has nothing to say
  kAside,        // changes neither time nor memory; `text` is its subject
  kNotModelled,  // changes time or memory, and the simulator does not know how: a warning, where it is on
  kDefaultOn,    // the same, where a switch that is on by default is off
  kRefused,      // defines another model: an error where it is on
};

struct MegatronFlag {
  std::string_view name;  // as in the dump; a trailing '*' stands for any rest
  MegatronFlagKind kind;
  std::string_view text;
  std::string_view harmless = {};  // "fp32|torch.float32": values that are as good as off
  std::string_view needs = {};     // says nothing where this switch is off
};

// The first row that fits, whole names before patterns; nullptr if there is none.
[[nodiscard]] const MegatronFlag* find_megatron_flag(std::string_view name);
[[nodiscard]] std::span<const MegatronFlag> megatron_flags();
// Does a name that no row knows say that it changes the model? It has a word of layers, heads, experts, norms
// or the vocabulary, and none of how they are computed (fused, recompute, overlap), learned, kept or logged.
[[nodiscard]] bool names_a_shape(std::string_view name);
// The one option that begins with `beginning`, as argparse takes it; nullopt where the tables know it itself,
// several begin so, or it is less than half of the name: few letters are rather an option of another program
// (`--pp`), which the tables do not know.
[[nodiscard]] std::optional<std::string_view> megatron_option_of(std::string_view beginning);
// The subject of options of torchrun and srun, which are not Megatron-LM's.
inline constexpr std::string_view kLauncherSubject = "launcher";
[[nodiscard]] bool is_of_launcher(const MegatronFlag& flag);

// A switch that others say nothing without.
struct MegatronSwitch {
  std::string_view name;
  std::string_view prefix;  // of names that no row knows, and that say nothing without it either
  std::string_view without;
};
[[nodiscard]] const MegatronSwitch* find_megatron_switch(std::string_view name);
// The switch that the prefix of an unknown name tells.
[[nodiscard]] const MegatronSwitch* megatron_switch_of(std::string_view unknown);

// Scripts that train another model than the decoder alone: "pretrain_bert.py".
struct MegatronScript {
  std::string_view name;
  std::string_view model;
};
[[nodiscard]] const MegatronScript* find_megatron_script(std::string_view file);

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

// The age of the Megatron-LM whose defaults count.
//
//   k2021  before sequence parallelism and fused gradient accumulation
//   k2022  with both, before flash attention and context parallelism
enum class MegatronEra : std::uint8_t { k2021, k2022, kNow };
// "of 2021"
[[nodiscard]] std::string_view megatron_era_name(MegatronEra era);
// Names that Megatron-LM dropped in 2023, most of them in 2022.
[[nodiscard]] bool is_of_2021(std::string_view name);
// The era that a name began in; a dump has all names of its time.
[[nodiscard]] MegatronEra megatron_era_of(std::string_view name);

}  // namespace stagecraft
