#include "formats/megatron_flags.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"

namespace stagecraft {

namespace {

using enum MegatronFlagKind;

constexpr std::string_view kDense = "without num_experts";
constexpr std::string_view kNoExpertRanks = "one expert rank";
constexpr std::string_view kNoLatent = "without multi_latent_attention";
constexpr std::string_view kNoPipeline = "without a pipeline";
constexpr std::string_view kNoSplit = "without a pipeline, or its layout says it";
constexpr std::string_view kNoReplicas = "one data rank";
constexpr std::string_view kNoTensor = "one tensor rank";
constexpr std::string_view kNoRecompute = "nothing is recomputed so";
constexpr std::string_view kPaths = "files and data";
constexpr std::string_view kLearning = "learning rate, loss and optimizer constants";
constexpr std::string_view kLogging = "logging and profiling";
constexpr std::string_view kCheckpoints = "checkpoints and restarts";
constexpr std::string_view kEvaluation = "evaluation and other tasks";
constexpr std::string_view kSeeds = "initial weights and seeds";
constexpr std::string_view kPositions = "positions";
constexpr std::string_view kRouting = "which expert a token visits";
constexpr std::string_view kDerived = "what Megatron-LM derived";
constexpr std::string_view kScales = "scales of embeddings, residuals and logits";
constexpr std::string_view kGated = "how a gated activation is laid out and bounded";
constexpr std::string_view kUnfusedOnly = "of unfused attention";
constexpr std::string_view kHousekeeping = "housekeeping of the process";
constexpr std::string_view kDeepSpeed = "of DeepSpeed", kDeepSpeedOff = "of DeepSpeed, which is off";
constexpr std::string_view kDeepSpeedExperts = "experts of Megatron-DeepSpeed, and there is no --deepspeed";
constexpr std::string_view kFp8Off = "without fp8", kFp4Off = "without fp4";
constexpr std::string_view kFp8Scaling = "scaling recipes of fp8", kFp4Scaling = "scaling recipes of fp4";
constexpr std::string_view kUnread = "a file with more settings, which is not read";
constexpr std::string_view kNoTensorOverlap = "without tp_comm_overlap";
constexpr std::string_view kCoarse =
    "a part of the tensor ranks' communication is not overlapped, and overlap.tensor knows all or none";

constexpr std::string_view kExperts = "num_experts", kFp8 = "fp8", kFp4 = "fp4",
                           kTensorOverlap = "tp_comm_overlap", kOfDeepSpeed = "deepspeed",
                           kEndsInBf16 = "first_last_layers_bf16";
constexpr MegatronSwitch kSwitches[] = {{kExperts, "moe_", kDense},
                                        {kFp8, "fp8_", kFp8Off},
                                        {kFp4, "fp4_", kFp4Off},
                                        {kEndsInBf16, "num_layers_at_", "without first_last_layers_bf16"},
                                        {kTensorOverlap, "tp_comm_", kNoTensorOverlap},
                                        {kOfDeepSpeed, "deepspeed_", kDeepSpeedOff}};

constexpr std::string_view kEncoder = "an encoder, which sees the whole sequence";
constexpr std::string_view kEncoderDecoder = "a model of encoder and decoder";
constexpr MegatronScript kScripts[] = {
    {"pretrain_bert.py", kEncoder},
    {"pretrain_ict.py", kEncoder},
    {"pretrain_t5.py", kEncoderDecoder},
    {"pretrain_retro.py", "retrieval inside the model"},
    {"pretrain_mamba.py", "state-space layers"},
    {"pretrain_vision_classify.py", "a model of images"},
    {"pretrain_vision_dino.py", "a model of images"},
    {"pretrain_vision_inpaint.py", "a model of images"},
    {"pretrain_vlm.py", "a model of images and text"},
};

constexpr MegatronFlag kFlags[] = {
    // The model.
    {"num_layers", kRead, ""},
    {"hidden_size", kRead, ""},
    {"ffn_hidden_size", kRead, ""},
    {"num_attention_heads", kRead, ""},
    {"group_query_attention", kRead, "latent attention has keys and values of every head"},
    {"num_query_groups", kRead, "no queries share keys and values"},
    {"kv_channels", kRead, "latent attention has head sizes of its own"},
    {"vocab_size", kRead, "padded_vocab_size says it"},
    {"padded_vocab_size", kRead, ""},
    {"pad_vocab_size_to", kRead, "padded_vocab_size says it"},
    {"make_vocab_size_divisible_by", kRead, "padded_vocab_size says it"},
    {"vocab_extra_ids", kRead, "vocab_size counts them"},
    {"max_position_embeddings", kRead, "a ceiling of positions, none are learned"},
    {"swiglu", kRead, ""},
    {"quick_geglu", kRead, ""},
    {"normalization", kRead, ""},
    {"position_embedding_type", kRead, ""},
    {"use_rotary_position_embeddings", kRead, ""},
    {"untie_embeddings_and_output_weights", kRead, ""},
    {"add_bias_linear", kRead, ""},
    {"add_qkv_bias", kRead, "all linear layers have biases"},
    {"qk_layernorm", kRead, "latent attention has its norms on the low ranks"},
    {"softmax_type", kRead, ""},
    {"window_size", kRead, ""},
    {"window_attn_skip_freq", kRead, "there is no sliding window"},
    {"hidden_dropout", kRead, ""},
    {"attention_dropout", kRead, ""},
    {"num_experts", kRead, ""},
    {"moe_ffn_hidden_size", kRead, kDense},
    {"moe_router_topk", kRead, kDense},
    {"moe_router_num_groups", kRead, "without moe_router_group_topk", {}, kExperts},
    {"moe_router_group_topk", kRead, kDense},
    {"moe_router_topk_limited_devices", kRead, kDense},
    {"moe_layer_freq", kRead, kDense},
    {"moe_shared_expert_intermediate_size", kRead, kDense},
    {"moe_shared_expert_gate", kRead, "without shared experts", {}, kExperts},
    {"moe_expert_capacity_factor", kRead, kDense},
    {"moe_pad_expert_input_to_capacity", kRead, "without moe_expert_capacity_factor", {}, kExperts},
    {"moe_token_dispatcher_type", kRead, kNoExpertRanks, {}, kExperts},
    {"moe_flex_dispatcher_backend", kRead, "without the flex dispatcher", {}, kExperts},
    {"moe_enable_deepep", kRead, "without the flex dispatcher", {}, kExperts},
    // Megatron-DeepSpeed's names, which are read beside --deepspeed.
    {"topk", kRefused, kDeepSpeedExperts, {}, kExperts},
    {"expert_interval", kRefused, kDeepSpeedExperts, "1", kExperts},
    {"mlp_type", kRefused, kDeepSpeedExperts, "standard", kExperts},
    {"moe_expert_parallel_size", kRefused, kDeepSpeedExperts, "1", kExperts},
    {"enable_expert_tensor_parallelism", kRefused, kDeepSpeedExperts, {}, kExperts},
    {"moe_train_capacity_factor", kNotModelled, kDeepSpeedExperts, "1.0", kExperts},
    {"moe_token_dropping", kNotModelled, kDeepSpeedExperts, "True", kExperts},
    {"moe_eval_capacity_factor", kAside, kEvaluation},
    {"moe_min_capacity", kAside, kRouting},
    {"moe_loss_coeff", kAside, kRouting},
    {"moe_top2_2nd_expert_sampling", kAside, kRouting},
    {"norm_topk_prob", kAside, kRouting},
    {"create_moe_param_group", kAside, kDeepSpeed, {}, kOfDeepSpeed},
    {"num_key_value_heads", kRead, "num_query_groups says it"},
    {"num_attention_heads_kv", kRead, "num_query_groups says it"},
    {"multi_latent_attention", kRead, ""},
    {"q_lora_rank", kRead, kNoLatent},
    {"kv_lora_rank", kRead, kNoLatent},
    {"qk_head_dim", kRead, kNoLatent},
    {"qk_pos_emb_head_dim", kRead, kNoLatent},
    {"v_head_dim", kRead, kNoLatent},
    {"mtp_num_layers", kRead, ""},
    {"tokenizer_type", kRead, "the size of the vocabulary is given"},
    // The machine and who does what.
    {"world_size", kRead, "the number of GPUs is given"},
    {"data_parallel_size", kRead, ""},
    {"nnodes", kRead, "the number of GPUs is given"},
    {"nproc_per_node", kRead, "the number of GPUs is given"},
    {"tensor_model_parallel_size", kRead, ""},
    {"pipeline_model_parallel_size", kRead, ""},
    {"context_parallel_size", kRead, ""},
    {"cp_comm_type", kRead, "one context rank"},
    {"expert_model_parallel_size", kRead, kDense},
    {"expert_tensor_parallel_size", kRead, kDense},
    {"sequence_parallel", kRead, kNoTensor},
    {"num_layers_per_virtual_pipeline_stage", kRead, kNoSplit},
    {"num_virtual_stages_per_pipeline_rank", kRead, kNoSplit},
    {"virtual_pipeline_model_parallel_size", kRead, kNoSplit},
    {"decoder_first_pipeline_num_layers", kRead, kNoSplit},
    {"decoder_last_pipeline_num_layers", kRead, kNoSplit},
    {"account_for_embedding_in_pipeline_split", kRead, kNoSplit},
    {"account_for_loss_in_pipeline_split", kRead, kNoSplit},
    {"pipeline_model_parallel_layout", kRead, kNoPipeline},
    {"pp_partition_method", kRead, kNoSplit},
    {"microbatch_group_size_per_vp_stage", kRead, "without model chunks"},
    {"use_tp_pp_dp_mapping", kRead, ""},
    {"use_distributed_optimizer", kRead, ""},
    {"use_megatron_fsdp", kRead, ""},
    {"use_torch_fsdp2", kRead, ""},
    {"data_parallel_sharding_strategy", kRead, "without use_megatron_fsdp"},
    {"zero_stage", kRead, kDeepSpeedOff},
    {"deepspeed", kRead, ""},
    // The training.
    {"seq_length", kRead, ""},
    {"micro_batch_size", kRead, ""},
    {"global_batch_size", kRead, ""},
    {"rampup_batch_size", kRead, ""},
    {"step_batch_size_schedule", kRead, ""},
    {"fp16", kRead, ""},
    {"bf16", kRead, ""},
    {"fp8", kRead, ""},
    {"fp8_hybrid", kRead, kFp8Off},
    {"fp8_e4m3", kRead, kFp8Off},
    {"fp8_param_gather", kRead, kFp8Off},
    {"fp8_dot_product_attention", kRead, kFp8Off},
    {"use_transformer_engine_op_fuser", kRead, ""},
    {"fp4", kRead, ""},
    {"fp4_recipe", kRead, kFp4Off},
    {"fp4_param_gather", kRead, kFp4Off},
    {"first_last_layers_bf16", kRead, kFp8Off},
    {"num_layers_at_start_in_bf16", kRead, kFp8Off, {}, kEndsInBf16},
    {"num_layers_at_end_in_bf16", kRead, kFp8Off, {}, kEndsInBf16},
    {"accumulate_allreduce_grads_in_fp32", kRead, ""},
    {"grad_reduce_in_bf16", kRead, ""},
    {"main_grads_dtype", kRead, ""},
    {"megatron_fsdp_main_grads_dtype", kRead, ""},
    {"recompute_granularity", kRead, ""},
    {"recompute_activations", kRead, ""},
    {"recompute_method", kRead, kNoRecompute},
    {"recompute_num_layers", kRead, kNoRecompute},
    {"recompute_modules", kRead, kNoRecompute},
    {"moe_layer_recompute", kRead, kDense},
    {"checkpoint_activations", kRead, ""},
    {"activations_checkpoint_method", kRead, ""},
    {"attention_backend", kRead, ""},
    {"use_flash_attn", kRead, ""},
    {"optimizer", kRead, ""},
    {"overlap_grad_reduce", kRead, kNoReplicas},
    {"ddp_impl", kRead, kNoReplicas},
    {"overlap_param_gather", kRead, "no parameters are gathered"},
    {"overlap_p2p_comm", kRead, kNoPipeline},
    {"tp_comm_overlap", kRead, kNoTensor},
    {"overlap_moe_expert_parallel_comm", kRead, "one expert rank"},
    {"moe_shared_expert_overlap", kRead, "one expert rank"},
    {"ddp_bucket_size", kRead, kNoReplicas},
    {"gradient_accumulation_fusion", kRead, ""},
    {"scatter_gather_tensors_in_pipeline", kRead, "no message is split"},
    {"optimizer_cpu_offload", kRead, ""},
    {"optimizer_offload_fraction", kRead, "the optimizer stays on the device"},
    {"cpu_optimizer", kRead, ""},
    {"cpu_offloading", kRead, ""},
    {"cpu_offloading_num_layers", kRead, "activations stay on the device"},
    // Another model.
    {"decoder_num_layers", kRefused, kEncoderDecoder},
    {"decoder_seq_length", kRefused, kEncoderDecoder},
    {"pipeline_model_parallel_split_rank", kRefused, kEncoderDecoder},
    {"encoder_tensor_model_parallel_size", kRefused, kEncoderDecoder},
    {"encoder_pipeline_model_parallel_size", kRefused, kEncoderDecoder},
    {"hybrid_override_pattern", kRefused, "state-space layers among the transformer's"},
    {"hybrid_layer_pattern", kRefused, "state-space layers among the transformer's"},
    {"hybrid_attention_ratio", kRefused, "state-space layers among the transformer's", "0.0"},
    {"hybrid_mlp_ratio", kRefused, "state-space layers among the transformer's", "0.0"},
    {"is_hybrid_model", kRefused, "state-space layers among the transformer's"},
    {"mamba_state_dim", kRefused, "state-space layers among the transformer's", "128"},
    {"mamba_head_dim", kRefused, "state-space layers among the transformer's", "64"},
    {"mamba_num_groups", kRefused, "state-space layers among the transformer's", "8"},
    {"linear_attention_freq", kRefused, "linear attention in some layers"},
    {"linear_attention_type", kRefused, "linear attention in some layers"},
    {"experimental_attention_variant", kRefused, "another attention"},
    {"heterogeneous_layers_config_path", kRefused, "layers that differ one by one"},
    {"heterogeneous_layers_config_encoded_json", kRefused, "layers that differ one by one"},
    {"retro_add_retriever", kRefused, "retrieval inside the model"},
    {"squared_relu", kRefused, "another activation than GELU and a gated SiLU"},
    {"multi_head_latent_attention", kRefused,
     "MindSpeed's latent attention, unlike Megatron-LM's --multi-latent-attention"},
    {"ds_sequence_parallel_size", kRefused,
     "DeepSpeed-Ulysses: --context-parallel-size with --cp-comm-type a2a is the same split", "1"},
    {"context_parallel_algo", kRefused, "MindSpeed's exchanges: --cp-comm-type names Megatron-LM's",
     "megatron_cp_algo"},
    {"hierarchical_context_parallel_sizes", kRefused, "context ranks in two levels"},
    {"hybrid_context_parallel", kRefused, "context ranks that differ by sample"},
    {"standalone_embedding_stage", kRefused, "a pipeline rank for the embedding alone"},
    {"num_experts_per_layer", kRefused, "experts that differ by layer"},
    // Known, and not modelled.
    {"attention_output_gate", kNotModelled,
     "a gate on attention's output: its weights and product are left out"},
    {"embed_layernorm", kNotModelled, "a norm behind the embedding"},
    {"qk_l2_norm", kNotModelled, "norms of queries and keys without weights"},
    {"mtp_detach_heads", kNotModelled, "gradients of the extra heads end before the layers"},
    {"memory_efficient_layer_norm", kNotModelled, "norms keep their outputs, not their inputs"},
    {"mlp_chunks_for_training", kNotModelled, "the MLP takes the sequence in chunks", "1"},
    {"output_layer_slice_num", kNotModelled, "the head in slices", "1"},
    {"moe_experts_pipeline_degree", kNotModelled, "experts work in parts beside their exchange", "1",
     kExperts},
    {"use_mok_megakernel", kNotModelled, "exchanges and experts are one kernel"},
    {"mok_*", kAside, "of use_mok_megakernel"},
    {"add_position_embedding", kAside, kPositions},
    {"distribute_saved_activations", kNotModelled, "checkpointed activations are shared by the tensor ranks"},
    {"partition_activations", kNotModelled, "checkpointed activations are shared by the tensor ranks"},
    {"checkpoint_in_cpu", kNotModelled, "checkpointed activations are kept in host memory"},
    {"fine_grained_activation_offloading", kNotModelled, "some activations are kept in host memory"},
    {"offload_modules", kAside, "of fine_grained_activation_offloading"},
    {"fp32_residual_connection", kNotModelled, "the residual stream is twice as wide"},
    {"exp_avg_dtype", kRead, ""},
    {"exp_avg_sq_dtype", kRead, ""},
    {"main_params_dtype", kNotModelled, "master weights of another width", "fp32|torch.float32"},
    {"use_precision_aware_optimizer", kRead, ""},
    {"megatron_fsdp_grad_comm_dtype", kNotModelled,
     "gradients are sent in another width than they are kept in", "auto"},
    {"fsdp_double_buffer", kNotModelled, "two buffers a unit stay allocated"},
    {"use_nccl_ub", kNotModelled, "collectives on registered buffers take fewer multiprocessors"},
    {"nccl_ub", kNotModelled, "collectives on registered buffers take fewer multiprocessors"},
    {"delay_wgrad_compute", kNotModelled, "weight gradients are computed beside expert exchanges"},
    {"moe_permute_fusion", kNotModelled, "the sort of tokens by expert is one kernel"},
    {"moe_input_jitter_eps", kAside, kRouting},
    {"overlap_param_gather_with_optimizer_step", kNotModelled,
     "parameters are gathered beside the optimizer's step"},
    {"defer_embedding_wgrad_compute", kNotModelled,
     "the head's weight gradient waits for the pipeline's end"},
    {"wgrad_deferral_limit", kAside, "of defer_embedding_wgrad_compute"},
    {"overlap_p2p_comm_warmup_flush", kNotModelled,
     "messages of the pipeline's warm-up and flush are hidden as well"},
    {"gradient_reduce_div_fusion", kDefaultOn, "gradients are divided by a kernel of their own"},
    {"ddp_num_buckets", kNotModelled, "buckets of gradients by their number, not their size"},
    {"num_distributed_optimizer_instances", kRead, "no optimizer is sharded"},
    {"async_tensor_model_parallel_allreduce", kRead, kNoTensor},
    {"tp_comm_overlap_cfg", kNotModelled, "its tuning of each overlapped GEMM", {}, kTensorOverlap},
    {"tp_comm_overlap_ag", kDefaultOn, kCoarse, {}, kTensorOverlap},
    {"tp_comm_overlap_rs", kDefaultOn, kCoarse, {}, kTensorOverlap},
    {"tp_comm_split_ag", kDefaultOn, kCoarse, {}, kTensorOverlap},
    {"tp_comm_split_rs", kDefaultOn, kCoarse, {}, kTensorOverlap},
    {"tp_comm_bulk_dgrad", kDefaultOn, kCoarse, {}, kTensorOverlap},
    {"tp_comm_bulk_wgrad", kDefaultOn, kCoarse, {}, kTensorOverlap},
    {"tp_comm_overlap_rs_dgrad",
     kNotModelled,
     "another GEMM that a message hides behind",
     {},
     kTensorOverlap},
    {"tp_comm_bootstrap_backend", kAside, "how messages are sent"},
    {"cuda_graph_impl", kRead, ""},
    {"cuda_graph_modules", kRead, "without CUDA graphs"},
    {"cuda_graph_scope", kRead, "without CUDA graphs"},
    {"enable_cuda_graph", kRead, ""},
    {"external_cuda_graph", kRead, ""},
    {"bias_gelu_fusion", kRead, ""},
    {"bias_swiglu_fusion", kRead, ""},
    {"bias_dropout_fusion", kRead, ""},
    {"apply_rope_fusion", kRead, ""},
    {"cross_entropy_loss_fusion", kRead, ""},
    {"cross_entropy_fusion_impl", kRead, "without cross_entropy_loss_fusion"},
    {"masked_softmax_fusion", kRead, kUnfusedOnly},
    {"attention_softmax_in_fp32", kAside, kUnfusedOnly},
    {"apply_query_key_layer_scaling", kAside, kUnfusedOnly},
    {"persist_layer_norm", kAside, "which kernel of the norm"},
    {"no_persist_layer_norm", kAside, "which kernel of the norm"},
    {"apply_layernorm_1p", kAside, "which kernel of the norm"},
    {"transformer_impl", kNotModelled, "other kernels than Transformer Engine's", "transformer_engine"},
    {"use_legacy_models", kRead, "DeepSpeed and FSDP2 have software of their own"},
    {"moe_grouped_gemm", kAside, "always grouped here"},
    {"moe_use_legacy_grouped_gemm", kAside, "always grouped here"},
    {"moe_single_grouped_*", kAside, "always grouped here"},
    {"moe_mlp_glu_interleave_size", kAside, kGated},
    {"moe_shared_expert_glu_interleave_size", kAside, kGated},
    {"moe_router_padding_for_fp8", kAside, kRouting},
    {"moe_n_hash_layers", kAside, kRouting},
    {"actual_vocab_size", kAside, "of moe_n_hash_layers"},
    {"moe_router_force_load_balancing", kAside, "experts.imbalance is 1 unless given"},
    {"moe_deepep_num_sms", kAside, "of the flexible dispatcher"},
    {"moe_router_load_balancing_type", kAside, kRouting},
    {"moe_router_score_function", kAside, kRouting},
    {"moe_router_pre_softmax", kAside, kRouting},
    {"moe_router_topk_scaling_factor", kAside, kRouting},
    {"moe_router_enable_expert_bias", kAside, kRouting},
    {"moe_router_bias_update_rate", kAside, kRouting},
    {"moe_router_dtype", kAside, kRouting},
    {"moe_router_padding_for_quantization", kAside, kRouting},
    {"moe_aux_loss_coeff", kAside, kRouting},
    {"moe_z_loss_coeff", kAside, kRouting},
    {"moe_token_drop_policy", kAside, kRouting},
    {"moe_apply_probs_on_input", kAside, kRouting},
    {"moe_per_layer_logging", kAside, kLogging},
    {"moe_use_upcycling", kAside, kCheckpoints},
    {"moe_upcycling_granularity", kAside, kCheckpoints},
    {"moe_pad_experts_for_cuda_graph_inference", kAside, kEvaluation},
    {"moe_hybridep_num_sms", kAside, "of the flexible dispatcher"},
    {"moe_router_fusion", kNotModelled, "the choice of experts is one kernel", {}, kExperts},
    {"moe_extended_tp", kNotModelled, "tensor and expert ranks split each expert", {}, kExperts},
    {"moe_latent_size", kRefused, "experts that work in a narrower space than the layers", {}, kExperts},
    {"standalone*", kRefused, "a pipeline rank of its own"},
    {"reset_attention_mask", kNotModelled, "attention within documents only does less work"},
    {"use_cpu_initialization", kAside, kSeeds},
    {"no_async_tensor_model_parallel_allreduce", kNotModelled, "the all-reduce of inputs is not overlapped"},
    {"use_ring_exchange_p2p", kAside, "how messages are sent"},
    {"batch_p2p_comm", kAside, "how messages are sent"},
    {"batch_p2p_communication", kAside, "how messages are sent"},
    {"align_param_gather", kAside, "when pipeline ranks gather"},
    {"align_grad_reduce", kAside, "when pipeline ranks reduce"},
    {"delay_grad_reduce", kAside, "when pipeline ranks reduce"},
    {"use_sharp", kNotModelled, "reductions in the switches"},
    {"high_priority_stream_groups", kAside, "priorities of streams"},
    {"use_contiguous_buffers*", kAside, "one buffer of gradients is assumed"},
    {"contigious_checkpointing", kAside, kDeepSpeed, {}, kOfDeepSpeed},
    {"synchronize_each_layer", kAside, kDeepSpeed, {}, kOfDeepSpeed},
    {"profile_backward", kAside, kDeepSpeed, {}, kOfDeepSpeed},
    {"deepspeed_config", kNotModelled, kUnread, {}, kOfDeepSpeed},
    {"deepspeed_*", kAside, kDeepSpeed, {}, kOfDeepSpeed},
    {"deepscale_config", kNotModelled, kUnread, {}, kOfDeepSpeed},
    {"deepscale", kAside, kDeepSpeed, {}, kOfDeepSpeed},
    {"remote_device", kNotModelled, "weights are kept outside the device", "none", kOfDeepSpeed},
    {"params_dtype", kAside, kDerived},
    {"transformer_pipeline_model_parallel_size", kAside, kDerived},
    {"consumed_*", kAside, kDerived},
    {"skipped_train_samples", kAside, kDerived},
    {"variable_seq_lengths", kAside, kDerived},
    {"iteration", kAside, kDerived},
    {"start_weight_decay", kAside, kLearning},
    {"end_weight_decay", kAside, kLearning},
    // Neither time nor memory.
    {"lr", kAside, kLearning},
    {"lr_*", kAside, kLearning},
    {"min_lr", kAside, kLearning},
    {"decoupled_*", kAside, kLearning},
    {"override_*", kAside, kLearning},
    {"use_checkpoint_args", kRead, "the dump has what the checkpoint said"},
    {"use_mp_args_from_checkpoint_args", kRead, "the dump has what the checkpoint said"},
    {"use_checkpoint_lr_scheduler", kAside, kLearning},
    {"use_checkpoint_opt_param_scheduler", kAside, kLearning},
    {"warmup", kAside, kLearning},
    {"weight_decay*", kAside, kLearning},
    {"adam_*", kAside, kLearning},
    {"sgd_momentum", kAside, kLearning},
    {"scale_emb", kAside, kScales},
    {"scale_depth", kAside, kScales},
    {"dim_model_base", kAside, kScales},
    {"skip_bias_add", kAside, "where a bias is added"},
    {"use_mup", kAside, kLearning},
    {"mup_*", kAside, kLearning},
    {"clip_grad", kAside, kLearning},
    {"loss_scale*", kAside, kLearning},
    {"initial_loss_scale", kAside, kLearning},
    {"min_loss_scale", kAside, kLearning},
    {"hysteresis", kAside, kLearning},
    {"calculate_per_token_loss", kAside, kLearning},
    {"mtp_loss_scaling_factor", kAside, kLearning},
    {"fp16_lm_cross_entropy", kAside, kLearning},
    {"fp8_margin", kAside, kFp8Scaling},
    {"fp8_interval", kAside, kFp8Scaling},
    {"fp8_amax_*", kAside, kFp8Scaling},
    {"fp8_quantizer_factory", kAside, kFp8Scaling},
    {"fp8_wgrad", kDefaultOn, "weight gradients stay in 16 bit", {}, kFp8},
    {"fp8_multi_head_attention", kNotModelled, "attention and what surrounds it in 8 bit", {}, kFp8},
    {"fp8_output_proj", kNotModelled, "the head's product in 8 bit", {}, kFp8},
    {"fp4_quantizer_factory", kAside, kFp4Scaling},
    {"te_precision_config_file", kNotModelled, kUnread},
    {"layernorm_epsilon", kAside, kLearning},
    {"norm_epsilon", kAside, kLearning},
    {"apply_residual_connection_post_layernorm", kAside, "where the residual is taken"},
    {"openai_gelu", kAside, "which GELU"},
    {"glu_linear_offset", kAside, kGated},
    {"activation_func_clamp_value", kRead, ""},
    {"onnx_safe", kAside, kHousekeeping},
    {"mscale*", kAside, kPositions},
    {"rotary_*", kAside, kPositions},
    {"rope_*", kAside, kPositions},
    {"use_rope_scaling", kAside, kPositions},
    {"no_rope_freq", kAside, kPositions},
    {"yarn_*", kAside, kPositions},
    {"beta_fast", kAside, kPositions},
    {"beta_slow", kAside, kPositions},
    {"mrope_section", kAside, kPositions},
    {"init_method*", kAside, kSeeds},
    {"embedding_init_method_std", kAside, kSeeds},
    {"init_model_with_meta_device", kAside, kSeeds},
    {"perform_initialization", kAside, kSeeds},
    {"seed", kAside, kSeeds},
    {"data_parallel_random_init", kAside, kSeeds},
    {"deterministic_mode", kNotModelled, "other kernels where the fast ones are not deterministic"},
    {"train_iters", kAside, "length of the training"},
    {"train_samples", kAside, "length of the training"},
    {"train_tokens", kAside, "length of the training"},
    {"exit_*", kAside, "length of the training"},
    {"iterations_to_skip", kAside, "length of the training"},
    {"data_*", kAside, kPaths},
    {"mock_data", kAside, kPaths},
    {"vocab_file", kAside, kPaths},
    {"merge_file", kAside, kPaths},
    {"tokenizer_*", kAside, kPaths},
    {"tiktoken_*", kAside, kPaths},
    {"null_tokenizer*", kAside, kPaths},
    {"split", kAside, kPaths},
    {"train_data_path", kAside, kPaths},
    {"valid_data_path", kAside, kPaths},
    {"test_data_path", kAside, kPaths},
    {"num_workers", kAside, kPaths},
    {"num_dataset_builder_threads", kAside, kPaths},
    {"dataloader_type", kAside, kPaths},
    {"mmap_*", kAside, kPaths},
    {"create_attention_mask_in_dataloader", kAside, kPaths},
    {"reset_position_ids", kAside, kPaths},
    {"eod_mask_loss", kAside, kPaths},
    {"s3_cache_path", kAside, kPaths},
    {"embedding_path", kAside, kPaths},
    {"sample_rate", kAside, kPaths},
    {"log_*", kAside, kLogging},
    {"logging_level", kAside, kLogging},
    {"timing_log_*", kAside, kLogging},
    {"tensorboard_*", kAside, kLogging},
    {"wandb_*", kAside, kLogging},
    {"one_logger_*", kAside, kLogging},
    {"enable_one_logger", kAside, kLogging},
    {"profile", kAside, kLogging},
    {"profile_*", kAside, kLogging},
    {"use_pytorch_profiler", kAside, kLogging},
    {"record_memory_history", kAside, kLogging},
    {"memory_snapshot_path", kAside, kLogging},
    {"capture_range*", kAside, kLogging},
    {"cuda_graph_trace", kAside, kLogging},
    {"cuda_memory_usage", kAside, kLogging},
    {"config_logger_dir", kAside, kLogging},
    {"barrier_with_l1_time", kAside, kLogging},
    {"save", kAside, kCheckpoints},
    {"save_*", kAside, kCheckpoints},
    {"load", kAside, kCheckpoints},
    {"load_*", kAside, kCheckpoints},
    {"no_load_*", kAside, kCheckpoints},
    {"no_save_*", kAside, kCheckpoints},
    {"ckpt_*", kAside, kCheckpoints},
    {"dist_ckpt_*", kAside, kCheckpoints},
    {"use_dist_ckpt*", kAside, kCheckpoints},
    {"auto_detect_ckpt_format", kAside, kCheckpoints},
    {"async_save", kAside, kCheckpoints},
    {"finetune", kAside, kCheckpoints},
    {"pretrained_checkpoint", kAside, kCheckpoints},
    {"non_persistent_*", kAside, kCheckpoints},
    {"adlr_*", kAside, kCheckpoints},
    {"inprocess_*", kAside, kCheckpoints},
    {"rerun_mode", kAside, kCheckpoints},
    {"error_injection_*", kAside, kCheckpoints},
    {"enable_ft_package", kAside, kCheckpoints},
    {"replication*", kAside, kCheckpoints},
    {"eval_*", kAside, kEvaluation},
    {"full_validation", kAside, kEvaluation},
    {"skip_train", kAside, kEvaluation},
    {"bert_*", kAside, kEvaluation},
    {"biencoder_*", kAside, kEvaluation},
    {"ict_*", kAside, kEvaluation},
    {"retriever_*", kAside, kEvaluation},
    {"retro_*", kAside, kEvaluation},
    {"vision_*", kAside, kEvaluation},
    {"dino_*", kAside, kEvaluation},
    {"swin_*", kAside, kEvaluation},
    {"rl_*", kAside, kEvaluation},
    {"grpo_*", kAside, kEvaluation},
    {"inference_*", kAside, kEvaluation},
    {"mlp_chunks_for_prefill", kAside, kEvaluation},
    {"mask_*", kAside, kEvaluation},
    {"short_seq_prob", kAside, kEvaluation},
    {"query_in_block_prob", kAside, kEvaluation},
    {"block_data_path", kAside, kEvaluation},
    {"evidence_data_path", kAside, kEvaluation},
    {"titles_data_path", kAside, kEvaluation},
    {"indexer_*", kAside, kEvaluation},
    {"use_one_sent_docs", kAside, kEvaluation},
    {"img_*", kAside, kEvaluation},
    {"patch_dim", kAside, kEvaluation},
    {"num_channels", kAside, kEvaluation},
    {"num_classes", kAside, kEvaluation},
    {"classes_fraction", kAside, kEvaluation},
    {"standalone", kAside, kLauncherSubject},
    {"rank", kAside, kLauncherSubject},
    {"local_rank", kAside, kLauncherSubject},
    {"node_rank", kAside, kLauncherSubject},
    {"master_addr", kAside, kLauncherSubject},
    {"master_port", kAside, kLauncherSubject},
    {"rdzv_*", kAside, kLauncherSubject},
    {"distributed_*", kAside, kLauncherSubject},
    {"lazy_mpu_init", kAside, kLauncherSubject},
    {"mpi", kAside, kLauncherSubject},
    {"container_*", kAside, kLauncherSubject},
    {"nccl_communicator_config_path", kNotModelled, "settings of NCCL of its own"},
    {"pipeline_model_parallel_comm_backend*", kAside, "how messages are sent"},
    {"manual_gc*", kAside, kHousekeeping},
    {"empty_unused_memory_level", kNotModelled, "the allocator is emptied every iteration", "0"},
    {"check_for_*", kAside, kHousekeeping},
    {"check_weight_hash_*", kAside, kHousekeeping},
    {"enable_experimental", kAside, kHousekeeping},
    {"enable_gloo_process_groups", kAside, kHousekeeping},
    {"enable_msc", kAside, kHousekeeping},
    {"use_mcore_models", kRead, "DeepSpeed and FSDP2 have software of their own"},
    {"yaml_cfg", kNotModelled, kUnread},
    {"spec", kNotModelled, "layers of another make"},
};

constexpr MegatronSpelling kSpellings[] = {
    {"disable_bias_linear", "add_bias_linear", "False"},
    {"no_position_embedding", "add_position_embedding", "False"},
    {"disable_moe_token_dropping", "moe_token_dropping", "False"},
    {"disable_moe_top2_2nd_expert_sampling", "moe_top2_2nd_expert_sampling", "False"},
    {"no_gradient_accumulation_fusion", "gradient_accumulation_fusion", "False"},
    {"no_overlap_p2p_communication", "overlap_p2p_comm", "False"},
    {"overlap_p2p_communication_warmup_flush", "overlap_p2p_comm_warmup_flush", ""},
    {"microbatch_group_size_per_virtual_pipeline_stage", "microbatch_group_size_per_vp_stage", ""},
    {"no_scatter_gather_tensors_in_pipeline", "scatter_gather_tensors_in_pipeline", "False"},
    {"no_masked_softmax_fusion", "masked_softmax_fusion", "False"},
    {"no_bias_gelu_fusion", "bias_gelu_fusion", "False"},
    {"no_bias_swiglu_fusion", "bias_swiglu_fusion", "False"},
    {"no_bias_dropout_fusion", "bias_dropout_fusion", "False"},
    {"no_rope_fusion", "apply_rope_fusion", "False"},
    {"no_async_tensor_model_parallel_allreduce", "async_tensor_model_parallel_allreduce", "False"},
    {"no_fp8_wgrad", "fp8_wgrad", "False"},
    {"no_gradient_reduce_div_fusion", "gradient_reduce_div_fusion", "False"},
    {"disable_tp_comm_overlap_ag", "tp_comm_overlap_ag", "False"},
    {"disable_tp_comm_overlap_rs", "tp_comm_overlap_rs", "False"},
    {"disable_tp_comm_split_ag", "tp_comm_split_ag", "False"},
    {"disable_tp_comm_split_rs", "tp_comm_split_rs", "False"},
    {"disable_tp_comm_bulk_dgrad", "tp_comm_bulk_dgrad", "False"},
    {"disable_tp_comm_bulk_wgrad", "tp_comm_bulk_wgrad", "False"},
    {"no_query_key_layer_scaling", "apply_query_key_layer_scaling", "False"},
    {"no_create_attention_mask_in_dataloader", "create_attention_mask_in_dataloader", "False"},
    {"no_mmap_bin_files", "mmap_bin_files", "False"},
    {"no_check_for_nan_in_loss_and_grad", "check_for_nan_in_loss_and_grad", "False"},
    {"no_initialization", "perform_initialization", "False"},
    {"no_barrier_with_level_1_timing", "barrier_with_l1_time", "False"},
    {"no_align_param_gather", "align_param_gather", "False"},
    {"no_align_grad_reduce", "align_grad_reduce", "False"},
    {"disable_msc", "enable_msc", "False"},
    {"disable_gloo_process_groups", "enable_gloo_process_groups", "False"},
    {"fp8_format", "fp8", ""},
    {"fp8_param", "fp8_param_gather", ""},
    {"fp4_format", "fp4", ""},
    {"fp4_param", "fp4_param_gather", ""},
};

constexpr MegatronDeadName kDeadNames[] = {
    {"model_parallel_size", "tensor_model_parallel_size", true},
    {"batch_size", "micro_batch_size", true},
    {"encoder_seq_length", "seq_length", true},
    {"encoder_num_layers", "num_layers", true},
    {"checkpoint_num_layers", "recompute_num_layers", true},
    {"activations_checkpoint_num_layers", "recompute_num_layers", true},
    {"activations_checkpoint_granularity", "recompute_granularity", true},
    {"checkpoint_granularity", "recompute_granularity", true},
    {"checkpoint_method", "recompute_method", true},
    {"distribute_checkpointed_activations", "distribute_saved_activations", true},
    {"use_custom_fsdp", "use_megatron_fsdp", true},
    {"fp4_param", "fp4_param_gather", true},  // of dumps
    {"checkpoint_activations", "recompute_granularity"},
    {"activations_checkpoint_method", "recompute_granularity"},
    {"ddp_impl", "overlap_grad_reduce"},
    {"moe_layer_recompute", "recompute_modules"},
    {"fp8_hybrid", "fp8"},
    {"fp8_e4m3", "fp8"},
};

constexpr std::string_view k2021[] = {"model_parallel_size",
                                      "batch_size",
                                      "checkpoint_num_layers",
                                      "activations_checkpoint_num_layers",
                                      "checkpoint_activations",
                                      "activations_checkpoint_method",
                                      "ddp_impl",
                                      "warmup",
                                      "override_lr_scheduler",
                                      "use_checkpoint_lr_scheduler",
                                      "distribute_checkpointed_activations"};

constexpr std::string_view k2022[] = {"sequence_parallel",     "recompute_granularity",
                                      "recompute_activations", "recompute_method",
                                      "recompute_num_layers",  "use_distributed_optimizer"};

constexpr std::string_view kNewer[] = {"context_parallel_size", "use_flash_attn",       "attention_backend",
                                       "transformer_impl",      "use_mcore_models",     "swiglu",
                                       "overlap_grad_reduce",   "group_query_attention"};

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

template <class Row, std::size_t n, class Fits>
const Row* find_row(const Row (&rows)[n], Fits fits) {
  const Row* const found = std::ranges::find_if(rows, fits);
  return found == std::end(rows) ? nullptr : found;
}

}  // namespace

std::span<const MegatronFlag> megatron_flags() {
  return kFlags;
}

const MegatronFlag* find_megatron_flag(std::string_view name) {
  const auto whole = std::ranges::find(kFlags, name, &MegatronFlag::name);
  if (whole != std::end(kFlags)) return &*whole;
  const auto pattern = std::ranges::find_if(kFlags, [&](const MegatronFlag& flag) {
    const std::size_t star = flag.name.find('*');
    return star != std::string_view::npos && name.starts_with(flag.name.substr(0, star)) &&
           name.ends_with(flag.name.substr(star + 1));
  });
  return pattern == std::end(kFlags) ? nullptr : &*pattern;
}

std::optional<std::string_view> megatron_option_of(std::string_view beginning) {
  if (beginning.empty() || find_megatron_flag(beginning) != nullptr) return std::nullopt;
  std::set<std::string_view> options;
  const auto consider = [&](std::string_view name) {
    if (name.starts_with(beginning)) options.insert(name);
  };
  for (const MegatronFlag& flag : kFlags)
    consider(flag.name);  // of a pattern, what it stands for is not known
  for (const MegatronSpelling& spelling : kSpellings) consider(spelling.option);
  for (const MegatronDeadName& dead : kDeadNames) consider(dead.name);
  if (options.size() != 1) return std::nullopt;
  const std::string_view whole = *options.begin();
  const bool read_so =
      whole != beginning && whole.find('*') == std::string_view::npos && 2 * beginning.size() >= whole.size();
  return read_so ? std::optional(whole) : std::nullopt;
}

bool names_a_shape(std::string_view name) {
  constexpr std::string_view kShape[] = {"head",    "heads",  "expert",  "experts",  "layer",        "layers",
                                         "vocab",   "window", "windows", "kvstates", "latent",       "norm",
                                         "rmsnorm", "glu",    "swiglu",  "geglu",    "intermediate", "hidden",
                                         "ffn",     "mlp",    "kv",      "lora",     "layernorm",    "tie",
                                         "dense",   "bias",   "dim",     "depth"};
  constexpr std::string_view kHow[] = {
      "fused",   "fusion",     "recompute", "remat", "overlap", "comm",     "nccl",     "alltoall", "gemm",
      "init",    "lr",         "wd",        "decay", "loss",    "dropout",  "log",      "trace",    "swap",
      "offload", "checkpoint", "ckpt",      "eps",   "epsilon", "offset",   "centered", "fp32",     "grad",
      "param",   "load",       "save",      "data",  "async",   "inference"};
  bool shape = false;
  for (const std::string_view word : split(name, '_')) {
    if (contains(kHow, word)) return false;
    shape = shape || contains(kShape, word);
  }
  return shape;
}

std::span<const MegatronSpelling> megatron_spellings() {
  return kSpellings;
}

std::span<const MegatronDeadName> megatron_dead_names() {
  return kDeadNames;
}

bool is_of_launcher(const MegatronFlag& flag) {
  return flag.text == kLauncherSubject;
}

const MegatronSwitch* find_megatron_switch(std::string_view name) {
  return find_row(kSwitches, [&](const MegatronSwitch& row) { return row.name == name; });
}

const MegatronSwitch* megatron_switch_of(std::string_view unknown) {
  return find_row(kSwitches, [&](const MegatronSwitch& row) { return unknown.starts_with(row.prefix); });
}

const MegatronScript* find_megatron_script(std::string_view file) {
  return find_row(kScripts, [&](const MegatronScript& row) {
    const std::size_t slash = file.rfind('/');
    return row.name == (slash == std::string_view::npos ? file : file.substr(slash + 1));
  });
}

std::string_view megatron_era_name(MegatronEra era) {
  if (era == MegatronEra::kNow) return "at commit 000c4ac (2025)";
  return era == MegatronEra::k2022 ? "of 2022" : "of 2021";
}

bool is_of_2021(std::string_view name) {
  return contains(k2021, name);
}

MegatronEra megatron_era_of(std::string_view name) {
  if (contains(kNewer, name)) return MegatronEra::kNow;
  return contains(k2022, name) ? MegatronEra::k2022 : MegatronEra::k2021;
}

}  // namespace stagecraft
