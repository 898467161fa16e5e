#include "base/usual_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace stagecraft {

namespace {

constexpr UsualName steps_called(std::string_view word) {
  return {word, "global_batch_size", "training",
          "set training.global_batch_size = micro_batch_size × steps × data"};
}

//   source  arguments of Megatron-LM (megatron/training/arguments.py), keys of Hugging Face's config.json, and
//           the letters of papers.
constexpr std::array kUsualNames{UsualName{"tp", "tensor"},
                                 UsualName{"tensor_parallel", "tensor"},
                                 UsualName{"tensor_model_parallel_size", "tensor"},
                                 UsualName{"pp", "pipeline"},
                                 UsualName{"pipeline_parallel", "pipeline"},
                                 UsualName{"pipeline_model_parallel_size", "pipeline"},
                                 UsualName{"dp", "data"},
                                 UsualName{"data_parallel", "data"},
                                 UsualName{"cp", "context"},
                                 UsualName{"context_parallel", "context"},
                                 UsualName{"context_parallel_size", "context"},
                                 UsualName{"ep", "expert"},
                                 UsualName{"expert_parallel", "expert"},
                                 UsualName{"expert_model_parallel_size", "expert"},
                                 UsualName{"etp", "expert_tensor"},
                                 UsualName{"expert_tensor_parallel_size", "expert_tensor"},
                                 UsualName{"sp", "sequence_parallel"},
                                 UsualName{"vp", "virtual_stages"},
                                 UsualName{"vpp", "virtual_stages"},
                                 UsualName{"zero", "zero_stage"},
                                 UsualName{"gbs", "global_batch_size"},
                                 UsualName{"batch_size", "global_batch_size"},
                                 UsualName{"global_batch", "global_batch_size"},
                                 UsualName{"mbs", "micro_batch_size"},
                                 UsualName{"micro_batch", "micro_batch_size"},
                                 steps_called("gradient_accumulation_steps"),
                                 steps_called("gradient_accumulation"),
                                 steps_called("grad_accum_steps"),
                                 UsualName{"seq", "sequence_length"},
                                 UsualName{"seq_len", "sequence_length"},
                                 UsualName{"seq_length", "sequence_length"},
                                 UsualName{"dtype", "precision"},
                                 UsualName{"num_layers", "layers"},
                                 UsualName{"num_hidden_layers", "layers"},
                                 UsualName{"n_layer", "layers"},
                                 UsualName{"n_layers", "layers"},
                                 UsualName{"hidden_size", "hidden"},
                                 UsualName{"n_embd", "hidden"},
                                 UsualName{"d_model", "hidden"},
                                 UsualName{"num_attention_heads", "heads"},
                                 UsualName{"num_heads", "heads"},
                                 UsualName{"n_head", "heads"},
                                 UsualName{"n_heads", "heads"},
                                 UsualName{"num_key_value_heads", "kv_heads"},
                                 UsualName{"n_kv_heads", "kv_heads"},
                                 UsualName{"num_query_groups", "kv_heads"},
                                 UsualName{"head_dim", "head_size"},
                                 UsualName{"ffn", "ffn_hidden"},
                                 UsualName{"d_ff", "ffn_hidden"},
                                 UsualName{"ffn_hidden_size", "ffn_hidden"},
                                 UsualName{"intermediate_size", "ffn_hidden"},
                                 UsualName{"vocab_size", "vocab"},
                                 UsualName{"max_position_embeddings", "max_sequence_length"},
                                 UsualName{"num_nodes", "nodes"},
                                 UsualName{"nnodes", "nodes"},
                                 UsualName{"num_gpus", "gpus"},
                                 UsualName{"fsdp", "zero_stage", "parallelism"},
                                 UsualName{"bandwidth", "nic_bandwidth", "cluster.node"},
                                 UsualName{"mtbf", "rate_per_node_day", "failures.process"}};

bool is_written(std::string_view written, std::string_view word) {
  return std::ranges::equal(written, word, [](char a, char b) {
    return (a == '-' ? '_' : std::tolower(static_cast<unsigned char>(a))) == b;
  });
}

}  // namespace

std::span<const UsualName> usual_names() {
  return kUsualNames;
}

std::optional<UsualName> key_called(std::string_view word) {
  for (const UsualName& name : kUsualNames)
    if (is_written(word, name.word)) return name;
  return std::nullopt;
}

}  // namespace stagecraft
