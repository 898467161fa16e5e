// Sections that configurations of DeepSpeed and of GPT-NeoX have in common, read into those of a scenario.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/deepspeed_reader.hpp"
#include "formats/import_entries.hpp"

namespace stagecraft {

// The request's machine, and how many of them make `gpus`; reports when they are no whole number.
[[nodiscard]] Entries read_cluster(SettingsReader& reader, const ImportRequest& request, std::int64_t gpus);

// What `zero_optimization` says of stage and overlap, each with its source.
struct ZeroSettings {
  std::int64_t stage = 0;
  ImportSource source = {};
  bool overlaps_gradients = false;
  ImportSource overlap_source = {};
};
// Adds its buckets to `options`, and what stays on the host to `offload`.
[[nodiscard]] ZeroSettings read_zero(SettingsReader& reader, Entries& options, Entries& offload);

// Warns of an optimizer that is priced as Adam and is not.
void read_optimizer(SettingsReader& reader);

// `precision` and the types of gradients, masters and moments, by the sections `fp16` and `bf16`; nothing where
// it is left to the trainer.
void read_precision(SettingsReader& reader, std::int64_t zero_stage, Entries& training);
// The same entries of a precision that is said elsewhere.
struct SaidPrecision {
  std::string word;
  ImportSource source;
};
void add_precision(SettingsReader& reader, std::int64_t zero_stage, const SaidPrecision& said,
                   Entries& training);

// train_batch_size = train_micro_batch_size_per_gpu * gradient_accumulation_steps * data ranks.
struct Batch {
  std::optional<std::int64_t> global = {}, micro = {}, data = {};
  std::optional<std::int64_t> steps = {};  // accumulated, where the configuration or its default says so
};
// Fills in what follows from the rest. `default_steps`: accumulated where the configuration does not say.
// Reports a contradiction.
[[nodiscard]] Batch read_batch(SettingsReader& reader, std::optional<std::int64_t> data,
                               std::optional<std::int64_t> default_steps);

}  // namespace stagecraft
