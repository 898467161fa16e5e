// The sections of a scenario, read in order from the arguments of Megatron-LM; each uses the results of the
// earlier ones.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/fragment.hpp"
#include "formats/megatron.hpp"
#include "formats/megatron_reader.hpp"

namespace stagecraft {

// Values needed by several sections.
struct MegatronJob {
  std::int64_t layers = 1;
  bool experts = false;
  std::int64_t deepspeed_experts = 0;  // how many Megatron-DeepSpeed has; 0: none, or those of Megatron-LM
  bool learned_positions = false;
  bool fp16 = false, fp8 = false;
  bool fp4 = false;  // fp8 is true, too: the scenario has it as a recipe of fp8
  bool unfused_attention = false;
  std::int64_t gpus = 1, tensor = 1, context = 1, pipeline = 1, data = 1, expert = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batch_size = 1;
};

// Refuses all models but decoders, by the script's name, the tokenizer and BERT's options.
void refuse_megatron_models(MegatronReader& reader);
// `job.tensor` pads the vocabulary. An entry `vocab` is absent where nothing says it.
[[nodiscard]] Entries read_megatron_model(MegatronReader& reader, const ImportRequest& request,
                                          MegatronJob& job);

// nullopt where every layer attends to all tokens, and after an error.
[[nodiscard]] std::optional<FragmentEntry> read_megatron_window(MegatronReader& reader,
                                                                const MegatronJob& job);

// GPUs and degrees; reports when they do not go together.
void read_megatron_degrees(MegatronReader& reader, const ImportRequest& request, MegatronJob& job);
[[nodiscard]] Entries read_megatron_cluster(MegatronReader& reader, const ImportRequest& request,
                                            const MegatronJob& job);
[[nodiscard]] Entries read_megatron_parallelism(MegatronReader& reader, MegatronJob& job);
[[nodiscard]] FragmentEntry read_megatron_schedule(MegatronReader& reader, const MegatronJob& job);
[[nodiscard]] Entries read_megatron_training(MegatronReader& reader, MegatronJob& job);
[[nodiscard]] Entries read_megatron_overlap(MegatronReader& reader, const MegatronJob& job);
[[nodiscard]] Entries read_megatron_options(MegatronReader& reader, const MegatronJob& job);
[[nodiscard]] Entries read_megatron_offload(MegatronReader& reader, const MegatronJob& job);
// What shards the optimizer's states, gradients and weights: its own options, DeepSpeed's or FSDP's.
struct MegatronZero {
  int stage = 0;  // 0 to 3
  ImportSource source = {};
};
[[nodiscard]] MegatronZero read_megatron_zero(MegatronReader& reader);

}  // namespace stagecraft
