#include "tools/reference/key_help.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace stagecraft {
namespace {

constexpr KeyHelp kScenarioHelp[] = {
    KeyHelp{"stagecraft", "version of this schema: 1"},
    KeyHelp{"name", "free text, the title of the report", "the file's name"},
    KeyHelp{"search", "what `stagecraft search` looks through; other commands do not read it"},
    KeyHelp{"model",
            "a name in scenarios/models/, the path of a YAML file or of a Hugging Face config.json, or the "
            "model written out"},
    KeyHelp{"model.name", "free text", "the file's name, or the family"},
    KeyHelp{"model.family",
            "`gpt` and `llama` set defaults, every key can be set alone; `stages` is an abstract pipeline of "
            "given costs"},
    KeyHelp{"model.layers", "transformer layers"},
    KeyHelp{"model.hidden", "width of the residual stream"},
    KeyHelp{"model.heads", "attention heads"},
    KeyHelp{"model.latent_attention",
            "multi-head latent attention (DeepSeek-V2): queries, keys and values through compressed vectors"},
    KeyHelp{"model.latent_attention.query_rank",
            "width of the compressed query; 0: queries are not compressed"},
    KeyHelp{"model.latent_attention.kv_rank", "width of the compressed keys and values"},
    KeyHelp{"model.latent_attention.nope_head_size", "of a head of Q and K, the part without position"},
    KeyHelp{"model.latent_attention.rope_head_size", "of a head of Q and K, the part with rotary position"},
    KeyHelp{"model.latent_attention.value_head_size", "of a head of V"},
    KeyHelp{"model.kv_heads", "key and value heads; fewer than `heads`: grouped queries", "`heads`"},
    KeyHelp{"model.head_size", "width of a head", "`hidden` / `heads`"},
    KeyHelp{"model.experts", "a mixture of experts in place of the MLP"},
    KeyHelp{"model.experts.count", "routed experts of a layer"},
    KeyHelp{"model.experts.top_k", "experts that a token goes to"},
    KeyHelp{"model.experts.groups", "groups of consecutive experts, of one size; must divide `count`"},
    KeyHelp{"model.experts.top_groups",
            "groups among whose experts a token chooses: it then goes to few nodes (DeepSeek-V3)",
            "`groups`"},
    KeyHelp{"model.experts.ffn_hidden", "width of one routed expert",
            "the model's `ffn_hidden`, with a warning; required where that is not known either"},
    KeyHelp{"model.experts.shared", "experts that every token goes to"},
    KeyHelp{"model.experts.shared_ffn_hidden", "width of one shared expert", "`ffn_hidden` of the experts"},
    KeyHelp{"model.experts.shared_gate", "the output of shared experts is gated"},
    KeyHelp{"model.experts.router_bias", "the router has a bias (gpt-oss)"},
    KeyHelp{"model.experts.first_dense_layers", "layers from the first on that have an MLP and no experts"},
    KeyHelp{"model.experts.dense_layers",
            "those layers by number, from 0, ascending; in place of `first_dense_layers`", "none"},
    KeyHelp{
        "model.experts.capacity_factor", "most tokens of an expert, over the even share: more are dropped",
        "none is dropped",
        R"({"type":["number","string"],"pattern":"^[+]?[0-9]*((_[0-9]+)+(\\.[0-9]+)?|(\\.[0-9]*)?[eE][+-]?[0-9]+)$","exclusiveMinimum":0})",
        "number, above 0"},
    KeyHelp{"model.experts.pad_to_capacity",
            "experts with fewer tokens are padded up to `capacity_factor`, so that every expert has as many"},
    KeyHelp{"model.experts.imbalance",
            "tokens of the busiest rank over the even share; in published jobs whose router chose freely 1.2 "
            "(Mixtral, one expert a rank) to 1.5 (Qwen3 235B, 16 a rank)"},
    KeyHelp{"model.ffn_hidden", "width of the MLP",
            "4 `hidden` (family: gpt); `ffn_hidden` of the experts where every layer has them; otherwise "
            "required"},
    KeyHelp{"model.sliding_window", "attention over the last tokens alone, in all layers or in most",
            "all tokens are attended to"},
    KeyHelp{"model.sliding_window.tokens", "tokens that a token attends to, itself among them"},
    KeyHelp{"model.sliding_window.full_every",
            "each so-manyth layer attends to all tokens: 2 means layers 1, 3, 5 and so on, from 0",
            "no layer does"},
    KeyHelp{"model.sliding_window.full_layers",
            "those layers by number, from 0, ascending; in place of `full_every`", "none"},
    KeyHelp{"model.vocab", "vocabulary, before padding",
            "51,200 (family: gpt), 32,000 (family: llama), with a warning"},
    KeyHelp{"model.max_sequence_length",
            "tokens that positions were made for; 0: not given, and learned positions are as many as "
            "`sequence_length`"},
    KeyHelp{"model.mtp_layers", "layers of multi-token prediction behind the last one"},
    KeyHelp{"model.activation",
            "of the MLP, the last two with a gate; of abstract stages: bytes that a micro-batch leaves for "
            "the backward",
            "`gelu` (family: gpt), `swiglu` (family: llama), 0 (family: stages)"},
    KeyHelp{"model.normalization", "of each layer"},
    KeyHelp{"model.norms",
            "of a layer, by their place: before attention and MLP, behind them on what they add to the "
            "residual stream "
            "(OLMo 2), or both (Gemma 2)"},
    KeyHelp{"model.position", "learned positions or rotary ones"},
    KeyHelp{"model.tied_embeddings", "the output layer shares the embedding's weights"},
    KeyHelp{"model.biases", "linear layers have biases"},
    KeyHelp{"model.qkv_bias", "the QKV projection has a bias", "as `biases`"},
    KeyHelp{"model.qk_norm",
            "norms of Q and K: `true` or `head` over each head, `width` over all heads together (OLMo 2)",
            "`false`"},
    KeyHelp{"model.attention_sinks",
            "the softmax of each head has one more score, which is a parameter (gpt-oss)"},
    KeyHelp{"model.clamped_activation",
            "what goes into the activation of an MLP is clamped before it (gpt-oss)"},
    KeyHelp{"model.dropout", "dropout kernels run and masks are kept"},
    KeyHelp{
        "model.forward",
        "time of a forward pass; one for all stages, or a list with one for each. Where `virtual_stages` is "
        "not said, one cost (or size) is that of a rank, and its chunks share it"},
    KeyHelp{"model.input_gradient", "time of the backward's part for its input"},
    KeyHelp{"model.weight_gradient", "time of the backward's part for its weights"},
    KeyHelp{"model.gradient", "bytes to reduce over data-parallel replicas at the end", "0"},
    KeyHelp{"model.recompute", "time of a recompute pass, for schedules that have them", "nothing"},
    KeyHelp{"model.message", "bytes that a micro-batch sends to the next stage", "`activation`"},
    KeyHelp{"cluster", "the machine; left out only for a model of family stages"},
    KeyHelp{"cluster.nodes",
            "how many nodes; or a list of groups, each a `node` and its `nodes`, for mixed hardware",
            "required, unless `gpus` is given"},
    KeyHelp{"cluster.node", "a name in scenarios/nodes/, a path, or the node written out",
            "required, unless `nodes` is a list"},
    KeyHelp{"cluster.nodes.node", "of this group, as `cluster.node`", "required"},
    KeyHelp{"cluster.nodes.nodes", "how many nodes of this kind"},
    KeyHelp{"cluster.node.name", "free text", "the file's name"},
    KeyHelp{"cluster.node.device", "the GPU's name; nodes of several devices are several groups"},
    KeyHelp{"cluster.node.gpus", "GPUs of a node"},
    KeyHelp{"cluster.node.nvlink", "of one GPU over all its NVLinks", "no NVLink: GPUs meet over PCIe"},
    KeyHelp{"cluster.node.nvlink_latency", "of one hop, GPU to NVSwitch", "required beside `nvlink`"},
    KeyHelp{"cluster.node.nics", "network adapters of a node"},
    KeyHelp{"cluster.node.nic_bandwidth", "of one of them"},
    KeyHelp{"cluster.node.pcie", "host to device, of one GPU; also GPU to NIC"},
    KeyHelp{"cluster.node.host_memory", "of a node; what `offload` keeps there has to fit; 0: not stated"},
    KeyHelp{"cluster.node.host_memory_bandwidth", "of all sockets together", "not stated"},
    KeyHelp{"cluster.node.nvswitch", "that the NVSwitches of a node pass together", "no limit"},
    KeyHelp{
        "cluster.node.nvlink_pairs",
        "GPUs and the NVLinks between them, `[0, 1, 2]`: a mesh in place of the NVSwitch", "NVSwitch",
        R"({"type":"array","minItems":1,"items":{"type":"array","items":{"type":"integer","minimum":0},"minItems":2,"maxItems":3}})"},
    KeyHelp{"cluster.node.nvlink_domain",
            "nodes that share one tier of NVSwitches; each is counted and named by itself"},
    KeyHelp{"cluster.node.gpus_per_pcie_switch", "GPUs below one PCIe switch",
            "each has its own way to the root"},
    KeyHelp{"cluster.node.pcie_uplink", "of a PCIe switch to its root, also of what `offload` copies",
            "as `pcie`"},
    KeyHelp{"cluster.node.sockets", "each with a PCIe root and an equal part of the GPUs"},
    KeyHelp{"cluster.node.socket_link", "between two sockets", "required beside `sockets` above 1"},
    KeyHelp{"cluster.node.profile", "cost profile of its device, in calibrate/profiles/", "none"},
    KeyHelp{"cluster.node.fabric", "the network that its nodes usually have, in scenarios/fabrics/", "none"},
    KeyHelp{"cluster.node.source", "where the figures are from", "nothing"},
    KeyHelp{"cluster.gpus", "a part of one node, in place of `nodes`", "whole nodes"},
    KeyHelp{"cluster.fabric",
            "the network between nodes: a name in scenarios/fabrics/, a path, or written out", "the node's"},
    KeyHelp{"cluster.fabric.name", "free text", "the file's name"},
    KeyHelp{"cluster.fabric.kind", "what the switches are"},
    KeyHelp{"cluster.fabric.nics_per_node", "NICs of a node on this fabric", "the node's"},
    KeyHelp{"cluster.fabric.nic_bandwidth", "of one NIC", "the node's"},
    KeyHelp{"cluster.fabric.nodes_per_leaf", "nodes below one leaf switch, or one group of rail switches"},
    KeyHelp{"cluster.fabric.oversubscription",
            "downlinks over uplinks of a leaf; 1: non-blocking; at most `nodes_per_leaf`"},
    KeyHelp{"cluster.fabric.spines", "spine switches of a pod; 1 stands for all of them"},
    KeyHelp{"cluster.fabric.nodes_per_pod", "nodes below one set of spine switches", "all, without a core"},
    KeyHelp{"cluster.fabric.cores", "core switches of a plane; 1 stands for all of them"},
    KeyHelp{"cluster.fabric.core_oversubscription", "of a pod's uplinks"},
    KeyHelp{"cluster.fabric.groups", "groups of a dragonfly", "required of a dragonfly"},
    KeyHelp{"cluster.fabric.routers_per_group", "of a dragonfly", "required of a dragonfly"},
    KeyHelp{"cluster.fabric.nodes_per_router", "of a dragonfly", "required of a dragonfly"},
    KeyHelp{"cluster.fabric.global_links", "between each two groups of a dragonfly"},
    KeyHelp{"cluster.fabric.global_bandwidth", "of one global link", "as `link_bandwidth`"},
    KeyHelp{"cluster.fabric.dims", "routers of a torus in each direction, one for every node",
            "required of a torus"},
    KeyHelp{"cluster.fabric.link_bandwidth", "between two routers of a torus, or of one group of a dragonfly",
            "required of both"},
    KeyHelp{"cluster.fabric.planes", "parallel fabrics; a node's NICs alternate between them"},
    KeyHelp{"cluster.fabric.routing",
            "over equal ways: all at once, or one by a hash of sender and receiver"},
    KeyHelp{"cluster.fabric.routing_seed", "of that hash"},
    KeyHelp{"cluster.fabric.switch_latency",
            "of each switch on the way of a message between stages; of collectives `step_latency` has it"},
    KeyHelp{"cluster.fabric.collective_efficiency",
            "share of the NICs' bandwidth that a collective over nodes reaches"},
    KeyHelp{"cluster.fabric.rail_efficiency", "the same of a group with one rank in each node",
            "as `collective_efficiency`"},
    KeyHelp{"cluster.fabric.crossing_efficiency",
            "the same of groups with several ranks in each node beside others of their kind",
            "as `collective_efficiency`"},
    KeyHelp{"cluster.fabric.point_to_point_efficiency", "the same of a pipeline message"},
    KeyHelp{"cluster.fabric.collective_latency", "added once per collective that leaves the node"},
    KeyHelp{"cluster.fabric.step_latency", "per step between nodes, 2(N-1) of them in a ring all-reduce"},
    KeyHelp{"cluster.fabric.chunk",
            "what each step of a tree but the last waits for as a whole; `0`: nothing"},
    KeyHelp{"cluster.fabric.chunking",
            "share of a collective's steps that is paid again where it is cut into chunks of the best size"},
    KeyHelp{"cluster.fabric.sharp", "the switches add: all-reduces may go through them"},
    KeyHelp{"cluster.fabric.point_to_point_latency", "added to each message between nodes"},
    KeyHelp{"cluster.fabric.tensor_collective_factor",
            "a site term: tensor-parallel collectives last so much longer"},
    KeyHelp{"cluster.fabric.tensor_collective_overhead",
            "a site term, added to each tensor-parallel collective"},
    KeyHelp{"cluster.fabric.source", "where the figures are from", "nothing"},
    KeyHelp{"cluster.links", "links that differ from the rule"},
    KeyHelp{"cluster.links.name",
            "`node 3 nic 1 -> leaf 0`, by the names of `stagecraft topology show --graphviz --full`; `*` "
            "stands for anything"},
    KeyHelp{"cluster.links.bandwidth", "of this link", "as the others"},
    KeyHelp{"cluster.links.share", "of its bandwidth that is left, in place of `bandwidth`"},
    KeyHelp{"cluster.links.latency", "of this link, for `topology show`; prices do not read it",
            "as the others"},
    KeyHelp{"cluster.links.missing", "the link is not there"},
    KeyHelp{"cluster.links.direction", "both ways, or as named"},
    KeyHelp{"profile", "cost profile: a name in calibrate/profiles/, or a path", "the node's"},
    KeyHelp{"parallelism", "how the model is split over the GPUs"},
    KeyHelp{"parallelism.tensor", "ranks that share every layer"},
    KeyHelp{"parallelism.pipeline", "stages, each with a part of the layers"},
    KeyHelp{"parallelism.data", "replicas, `context` not counted", "what the GPUs leave"},
    KeyHelp{"parallelism.context", "ranks that share a sequence"},
    KeyHelp{"parallelism.context_exchange",
            "how context ranks exchange keys and values: a ring of messages, gathered, or heads against "
            "tokens (Ulysses)"},
    KeyHelp{"parallelism.expert", "ranks that share the routed experts"},
    KeyHelp{"parallelism.expert_tensor", "ranks that share each routed expert"},
    KeyHelp{"parallelism.virtual_stages", "model chunks of a rank",
            "1; 2 of orders with several chunks, as interleaved-1f1b and zb-v"},
    KeyHelp{"parallelism.stage_layers",
            "layers of each (virtual) stage in model order, for uneven splits; 0: embedding or head only, "
            "and before a last 0 multi-token prediction only",
            "spread evenly"},
    KeyHelp{"parallelism.embedding_as_layer", "an even split counts the embedding as a layer"},
    KeyHelp{"parallelism.loss_as_layer", "an even split counts the output layer and the loss as a layer"},
    KeyHelp{"parallelism.sequence_parallel",
            "tensor ranks also share what lies between the sharded products (Korthikanti et al.)",
            "`false`; `true` with a warning for experts beside tensor ranks, which need it"},
    KeyHelp{"parallelism.replicated_embedding",
            "each tensor rank holds the whole word embedding (PyTorch's plans that leave it out)"},
    KeyHelp{"parallelism.zero_stage",
            "what replicas share: 1 optimizer states, 2 gradients as well, 3 weights as well (FSDP)"},
    KeyHelp{"parallelism.zero_group", "replicas that share, for hybrid sharding", "all replicas"},
    KeyHelp{
        "parallelism.order", "axes from the innermost ranks to the outermost",
        "tensor, context, expert, data, pipeline",
        R"({"type":"array","items":{"enum":["tensor","context","expert","data","pipeline"]},"minItems":5,"maxItems":5,"uniqueItems":true})",
        "list of all five"},
    KeyHelp{"training", "the job"},
    KeyHelp{"training.global_batch_size", "samples of an iteration, over all replicas"},
    KeyHelp{"training.micro_batch_size", "samples of a micro-batch"},
    KeyHelp{"training.sequence_length", "tokens of a sample",
            "the model's `max_sequence_length`; 2,048 with a warning where it has none"},
    KeyHelp{"training.precision", "of products and activations"},
    KeyHelp{"training.recompute", "what the backward computes again: a word, or a mapping"},
    KeyHelp{"training.recompute.granularity", "how much is computed again"},
    KeyHelp{
        "training.recompute.modules",
        "of selective recompute: Megatron-LM's `core_attn`, `layernorm`, `mlp`, `moe`, `moe_act`, "
        "`shared_experts`, `mla_up_proj`; `self_attn`, all of attention, which with `mlp` is a checkpoint "
        "around each block; torchtitan's `every_second_product`",
        "the software's: `every_second_product` of fsdp2 (with latent attention or norms behind the "
        "blocks the modules nearest to it), "
        "else `core_attn`",
        R"({"anyOf":[{"type":"string"},{"type":"array","minItems":1,"items":{"type":"string"}}]})"},
    KeyHelp{"training.recompute.method",
            "of full recompute: layers in groups of `layers`, or the first `layers` of a stage"},
    KeyHelp{"training.recompute.layers", "layers of a group, or of a stage"},
    KeyHelp{"training.attention", "a fused kernel that keeps no scores, or products and softmax"},
    KeyHelp{"training.optimizer",
            "Adam, with two moments and, beside 16-bit weights, their fp32 masters; AdamW costs the same"},
    KeyHelp{"training.sixteen_bit_layers",
            "of fp8: layers whose products stay in 16 bit all the same (Megatron-LM's "
            "`--first-last-layers-bf16`)",
            "none"},
    KeyHelp{"training.sixteen_bit_layers.first", "of the first layers, how many"},
    KeyHelp{"training.sixteen_bit_layers.last", "of the last layers"},
    KeyHelp{"training.autocast",
            "weights, gradients and the residual stream are fp32, and PyTorch casts what products read "
            "(`torch.autocast`, as in nanoGPT, Lightning's `bf16-mixed` or Transformers' `bf16`); not of "
            "FSDP's own mixed precision, which gathers in 16 bit"},
    KeyHelp{"training.gradient_dtype", "of gradients that are accumulated and reduced",
            "`fp16` in fp16 training, else `fp32`"},
    KeyHelp{
        "training.moment_dtype",
        "of both of Adam's moments; narrower than fp32, a step reads 16-bit gradients without an fp32 copy"},
    KeyHelp{"training.master_weights",
            "16-bit weights have fp32 masters; `false`: they are stepped themselves, as PyTorch does where "
            "all is bf16"},
    KeyHelp{
        "training.master_remainders",
        "masters keep only the 16 bits that bf16 weights lack, as Megatron-LM's precision-aware optimizer "
        "has them since Transformer Engine 2.1",
        "where `moment_dtype` is narrower than fp32; not beside `offload.optimizer` or weights in fp8, whose "
        "masters are whole"},
    KeyHelp{"schedule", "the order of passes: a name (`stagecraft schedule --help` lists them), or a mapping",
            "`1f1b`"},
    KeyHelp{"schedule.name", "as above", "required, unless `file` is given"},
    KeyHelp{"schedule.file", "an order in PyTorch's pipelining CSV, in place of a name", "none"},
    KeyHelp{"schedule.micro_batch_group",
            "of interleaving: micro-batches that pass a chunk together; 0: the schedule's own"},
    KeyHelp{"schedule.global_step",
            "false: a rank steps as soon as its own passes are done, without waiting for all",
            "true, false of schedules that never drain"},
    KeyHelp{"schedule.rollback", "chance that a step which did not wait is taken back"},
    KeyHelp{"schedule.iterations", "simulated in a row; the one before the last is reported",
            "1, or 4 where iterations run into each other"},
    KeyHelp{"schedule.fused_share", "time of a fused forward and backward, over the sum of both passes",
            "found from the traffic of each that the other's compute does not hide"},
    KeyHelp{"overlap", "what runs beside compute"},
    KeyHelp{"overlap.gradients", "the reduction of gradients beside the backward"},
    KeyHelp{"overlap.parameters", "the gathering of ZeRO's weights beside the forward"},
    KeyHelp{"overlap.pipeline", "pipeline messages beside compute; false: the sender waits"},
    KeyHelp{"overlap.tensor", "tensor collectives in chunks beside their products"},
    KeyHelp{"overlap.context", "context messages beside attention"},
    KeyHelp{"overlap.expert",
            "expert exchanges beside another micro-batch's compute; fused pairs hide them anyway"},
    KeyHelp{"overlap.shared_experts", "expert exchanges beside the shared experts"},
    KeyHelp{"options", "what the training software does"},
    KeyHelp{"options.scatter_gather",
            "tensor ranks send a part each of a pipeline message, receivers gather"},
    KeyHelp{"options.fused_kernels", "element-wise operations are fused", "the software's"},
    KeyHelp{"options.unfused",
            "what runs as plain PyTorch all the same, beside what the software does not fuse: `rmsnorm`, "
            "`swiglu` (any gate), "
            "`rope`, `gelu`",
            "`[]`"},
    KeyHelp{"options.fused",
            "of the same, what is one kernel all the same where `fused_kernels` is `false`, or the software "
            "has none "
            "(`nn.RMSNorm` since PyTorch 2.9, apex's norms)",
            "`[]`"},
    KeyHelp{"options.gradient_accumulation_fusion", "weight gradients are added to in the product itself",
            "the software's"},
    KeyHelp{"options.attention_kernel",
            "flash kernel, by its name in the profile; PyTorch's `scaled_dot_product_attention` runs `fa2` "
            "on Hopper until 2.10, `cudnn` since 2.11",
            "the best that software and profile have"},
    KeyHelp{"options.software", "a preset of scenarios/software/", "the profile's"},
    KeyHelp{"options.bucket_parameters", "parameters of one gradient bucket",
            "the larger of 40 million and 1 million times `data` and `context`"},
    KeyHelp{"options.reshard_after_forward", "of ZeRO 3: weights are gathered again for the backward",
            "`true`; `false` of fsdp2 under a pipeline"},
    KeyHelp{"options.expert_dispatcher",
            "how tokens get to experts; `node-aware`: once to each node that has one of theirs, and spread "
            "there (DeepEP)"},
    KeyHelp{
        "options.cuda_graphs",
        "what the host launches as one: `layers`, all of a layer that has a fixed shape, not what is "
        "routed to experts (Megatron-LM's `--cuda-graph-impl transformer_engine`); `iteration`, all of it",
        "the profile's: `layers` on GB200, else `none`"},
    KeyHelp{
        "options.fp8_recipe",
        "of fp8, where the scales come from: `delayed` of earlier iterations; `current`, the tensor's "
        "own (Megatron-LM's `tensorwise`); `blockwise`, one for 128 values (Hopper) and `mxfp8`, one "
        "for 32 (Blackwell); `nvfp4`, one for 16 values of 4 bits in place of 8 (Blackwell; Megatron-LM's "
        "`--fp4-format`); `torchao`, the tensor's own in each pass",
        "the software's: `torchao` of fsdp2, else `delayed`"},
    KeyHelp{"options.fp8_parameters",
            "of fp8: weights of the layers' products are kept and gathered in it "
            "(Megatron-LM's `--fp8-param-gather` and `--fp4-param-gather`, torchao's "
            "`enable_fsdp_float8_all_gather`)",
            "true of megatron-core under `zero_stage` 1 to 3 but with `nvfp4`, else false"},
    KeyHelp{"options.fp8_dispatch",
            "what goes to the experts, forward and backward, is fp8 with a scale for each 128 values "
            "(DeepSeek-V3); what comes back is not"},
    KeyHelp{"options.fp8_attention",
            "of fp8 on Blackwell: flash attention reads Q, K and V in fp8, with the scales of the recipe of "
            "that name "
            "(Megatron-LM's `--fp8-dot-product-attention`; Transformer Engine's NVTE_DPA_FP8_RECIPE); "
            "`none`: 16 bit"},
    KeyHelp{"options.fused_experts",
            "of `mxfp8` and `nvfp4`: products of the experts end in their activation and its cast "
            "(Transformer Engine's "
            "fused grouped MLP, Megatron-LM's `--use-transformer-engine-op-fuser`)"},
    KeyHelp{"options.foreach_step",
            "the optimizer steps operation by operation over all tensors, and makes one more of each "
            "(PyTorch's Adam and AdamW unless they are `fused`; Transformers' `adamw_torch`)"},
    KeyHelp{"options.memory", "what the software leaves on the GPU"},
    KeyHelp{"options.memory.fused_loss",
            "the loss is one kernel, and writes its gradient over the 16-bit logits (Transformer Engine's, "
            "Liger's)"},
    KeyHelp{"options.memory.compiled_loss",
            "the loss is Megatron-Core's compiled one (`--cross-entropy-loss-fusion`, `native`), which "
            "copies its "
            "softmax"},
    KeyHelp{"options.memory.fp32_logits", "the loss is PyTorch's own over fp32 logits",
            "`false`; without `fused_kernels` `true` of deepspeed, fsdp2 and `training.autocast`"},
    KeyHelp{
        "options.memory.loss_chunks",
        "parts of the tokens over which head and loss run, each forward and backward before the next "
        "(torchtitan's "
        "`ChunkedCELoss`: 8; Liger's fused linear cross entropy: vocabulary over hidden size, rounded up)"},
    KeyHelp{"options.memory.gathered_logits",
            "each tensor rank gathers all logits for its loss (PyTorch's plans with "
            "`output_layouts=Replicate()`)"},
    KeyHelp{
        "options.memory.keep_outputs",
        "a stage keeps what it sent: until its backward (DeepSpeed's pipeline); of fsdp2 until the step "
        "ends, when the last stage joins its logits (PyTorch's pipeline until mid 2025). Without a pipeline "
        "the training loop keeps the logits that the model returned until the next"},
    KeyHelp{"options.memory.gradient_placeholders", "one unread 16-bit gradient for each shape of weight"},
    KeyHelp{"options.memory.whole_gradients",
            "of ZeRO 2 and 3: gradients stay whole until the last micro-batch",
            "`false`; `true` of fsdp2 under a pipeline"},
    KeyHelp{
        "options.memory.bucket_copies",
        "gradients are copied to be reduced and joined to be stepped, as DeepSpeed does; in bf16 with fp32 "
        "gradients as its BF16_Optimizer does"},
    KeyHelp{"options.memory.fragmentation", "reserved over allocated memory, less 1",
            "the profile's; on a full card what is left, at least 0.02"},
    KeyHelp{"network", "priced by closed forms, or as flows that share links: a word, or a mapping"},
    KeyHelp{"network.mode", "as above"},
    KeyHelp{"network.placement", "which nodes are this job's"},
    KeyHelp{"network.placement.nodes",
            "nodes and ranges, in the order of its ranks: `[0-15, 32]`; left out with `placement`, what "
            "other jobs leave"},
    KeyHelp{"network.iterations",
            "of this job among `jobs`, in a row: above 1 the report has their mean as well", "1"},
    KeyHelp{"network.jobs", "other jobs on the same fabric"},
    KeyHelp{"network.jobs.scenario", "of the other job"},
    KeyHelp{"network.jobs.name", "free text", "the file's name"},
    KeyHelp{"network.jobs.start", "when its first iteration begins"},
    KeyHelp{"network.jobs.nodes", "nodes and ranges, in the order of its ranks: `[16-31]`"},
    KeyHelp{"network.background", "traffic that is always there"},
    KeyHelp{"network.background.from", "`node 3`, or `node 3 gpu 0`"},
    KeyHelp{"network.background.to", "`node 3`, or `node 3 gpu 0`"},
    KeyHelp{"network.background.rate", "above 0"},
    KeyHelp{"offload", "shares that are kept in host memory"},
    KeyHelp{"offload.optimizer", "of fp32 weights and moments; they are stepped on the host"},
    KeyHelp{"offload.activations",
            "of activations; written out behind the forward, read back before the backward"},
    KeyHelp{"offload.weights", "of 16-bit weights; read for each pass"},
    KeyHelp{"faults", "what goes wrong in one iteration"},
    KeyHelp{"faults.at", "from the beginning of the iteration"},
    KeyHelp{"faults.kind", "what goes wrong"},
    KeyHelp{"faults.node", "which node, from 0", "required of the kinds about nodes"},
    KeyHelp{"faults.gpu", "which GPU, from 0 over the whole cluster", "required of slow-gpu"},
    KeyHelp{"faults.link", "which link, by name; `*` stands for anything", "required of degraded-link"},
    KeyHelp{"faults.for", "how long", "to the end"},
    KeyHelp{"faults.factor",
            "times as long as otherwise, 1 or more; of a link the share of its capacity that is left",
            "required, but of dead-node"},
    KeyHelp{"assert", "what must hold after a run; a miss is exit code 1"},
    KeyHelp{"assert.iteration_time", "`<`, `<=`, `>`, `>=` or `==` and a time: `\"<= 10 s\"`", "not checked",
            R"({"type":"string","pattern":"^(<=|>=|==|<|>) *[0-9.]"})"},
    KeyHelp{"assert.samples_per_s", "a relation and a number", "not checked",
            R"({"type":"string","pattern":"^(<=|>=|==|<|>) *[0-9.+-]"})"},
    KeyHelp{"assert.tokens_per_s", "a relation and a number", "not checked",
            R"({"type":"string","pattern":"^(<=|>=|==|<|>) *[0-9.+-]"})"},
    KeyHelp{"assert.tokens_per_s_per_gpu", "a relation and a number", "not checked",
            R"({"type":"string","pattern":"^(<=|>=|==|<|>) *[0-9.+-]"})"},
    KeyHelp{"assert.mfu", "a relation and a share: `\">= 0.4\"`", "not checked",
            R"({"type":"string","pattern":"^(<=|>=|==|<|>) *[0-9.+-]"})"},
    KeyHelp{"assert.hfu", "a relation and a share", "not checked",
            R"({"type":"string","pattern":"^(<=|>=|==|<|>) *[0-9.+-]"})"},
    KeyHelp{"assert.peak_memory", "a relation and a size: `\"<= 72 GiB\"`", "not checked",
            R"({"type":"string","pattern":"^(<=|>=|==|<|>) *[0-9.]"})"},
    KeyHelp{"assert.bubble_over_ideal", "a relation and a share", "not checked",
            R"({"type":"string","pattern":"^(<=|>=|==|<|>) *[0-9.+-]"})"},
    KeyHelp{"assert.bubble_fraction", "a relation and a share", "not checked",
            R"({"type":"string","pattern":"^(<=|>=|==|<|>) *[0-9.+-]"})"},
    KeyHelp{
        "search.vary", "paths and their values: a list, `all` numbers that divide, or `{at_most: 8}`",
        "what scenarios/search/space.yaml varies",
        R"({"type":"object","additionalProperties":{"anyOf":[{"type":["string","number","boolean"]},{"type":"array","minItems":1},{"type":"object","additionalProperties":false,"properties":{"at_most":{"type":"integer","minimum":0},"tokens_each":{"type":"integer","minimum":0}}}]}})"},
    KeyHelp{"search.fix", "paths that stay as the scenario has them", "none"},
    KeyHelp{
        "search.gpus", "counts to try: `256..4096` (doubling, and the end), or a list", "the cluster's",
        R"({"anyOf":[{"type":["string","integer"]},{"type":"array","items":{"type":["integer","string"]}}]})"},
    KeyHelp{"search.batch", "the batch as given, or the largest that the replicas share up to it"},
    KeyHelp{"search.stages", "layers that do not divide are refused, or spread"},
    KeyHelp{"search.price", "of a GPU: `2 USD/h`", "no costs are told",
            R"({"type":"string","pattern":"^[0-9.]+ ?[A-Za-z]+/h$"})"},
    KeyHelp{"search.source", "where the limits are from", "nothing", R"({"type":"string"})"},
    KeyHelp{"failures", "weeks of failures, for `stagecraft goodput`: [failures.md](failures.md)"},
    KeyHelp{"failures.process", "what fails: a kind, a mapping, or a list of mappings", "`exponential`"},
    KeyHelp{"failures.process.kind", "the law"},
    KeyHelp{"failures.process.rate_per_node_day", "failures of a node in 24 h", "failures/defaults.yaml"},
    KeyHelp{"failures.process.exponent", "the rate goes with the job's nodes to this power"},
    KeyHelp{"failures.process.reference_nodes", "nodes on which the rate was measured",
            "required beside `exponent`"},
    KeyHelp{"failures.process.lemon_factor", "a node fails so many times as often after each incident",
            "failures/defaults.yaml"},
    KeyHelp{"failures.process.causes", "why nodes fail; the shares add up to 1"},
    KeyHelp{"failures.process.causes.name", "free text"},
    KeyHelp{"failures.process.causes.share", "of the failures", "required, unless it is the only one"},
    KeyHelp{"failures.process.causes.detect", "from the failure until the job knows",
            "failures/defaults.yaml"},
    KeyHelp{"failures.process.causes.severity", "the job restarts, or the node is lost until it is repaired"},
    KeyHelp{"failures.process.causes.repair",
            "how long a lost node is away: `none`, `empirical`, a time, or a mapping", "`failures.repair`"},
    KeyHelp{"failures.process.causes.rate_per_node_day", "of this component, in place of a share",
            "required of `kind: components`"},
    KeyHelp{"failures.process.cause", "the one cause, in place of `causes`", "the kind's"},
    KeyHelp{"failures.process.severity", "of the one cause"},
    KeyHelp{"failures.process.detect", "of the one cause", "failures/defaults.yaml"},
    KeyHelp{"failures.process.repair", "of the one cause", "`failures.repair`"},
    KeyHelp{"failures.process.file", "a recorded trace: a file of scenarios/traces/, or a path"},
    KeyHelp{"failures.process.scale", "times of the trace are so many times as long"},
    KeyHelp{"failures.process.offset", "where in the trace the run begins"},
    KeyHelp{"failures.process.repeat", "the trace begins again when it ends"},
    KeyHelp{"failures.process.count_scale", "nodes for each unit that a trace counts"},
    KeyHelp{"failures.process.servers", "how many servers a trace of faults watched", "those that it names"},
    KeyHelp{"failures.process.leave_out", "classes of faults that are no failures", "none"},
    KeyHelp{"failures.process.creation", "from an addition until the node is usable",
            "failures/defaults.yaml; 0 of traces of faults"},
    KeyHelp{"failures.process.share", "of a node's time that it is slow, in place of a rate",
            "failures/defaults.yaml"},
    KeyHelp{"failures.process.slowdown", "a factor, or the least and the largest", "failures/defaults.yaml"},
    KeyHelp{"failures.process.shortest", "slowness lasts at least", "failures/defaults.yaml"},
    KeyHelp{"failures.process.longest", "and at most", "failures/defaults.yaml"},
    KeyHelp{"failures.process.part", "the node computes slowly, or its traffic is slow"},
    KeyHelp{"failures.process.shape", "of the Weibull law; below 1: most fail soon",
            "failures/defaults.yaml"},
    KeyHelp{"failures.process.bursts_per_day", "of all nodes of the job, in place of a rate",
            "from `rate_per_node_day`"},
    KeyHelp{"failures.process.domain_nodes", "neighbours that a burst hits", "nodes below a leaf, or all"},
    KeyHelp{"failures.process.mean_size", "nodes of a burst, geometric, in place of `sizes`", "`sizes`"},
    KeyHelp{
        "failures.process.sizes", "nodes of a burst and how often so many: `{1: 499, 2: 20}`",
        "failures/defaults.yaml",
        R"({"type":"object","minProperties":1,"additionalProperties":false,"patternProperties":{"^[0-9_]+$":{"type":"number","exclusiveMinimum":0}}})"},
    KeyHelp{"failures.process.discovery", "how long wrong results stay unnoticed, on average"},
    KeyHelp{"failures.process.period", "between two maintenances", "failures/defaults.yaml"},
    KeyHelp{"failures.process.jitter", "give or take, at most half the period", "failures/defaults.yaml"},
    KeyHelp{"failures.process.notice", "announced so long before"},
    KeyHelp{"failures.process.duration", "of a maintenance"},
    KeyHelp{"failures.process.removal", "chance in each hour of the day that a node goes: one, or 24",
            "failures/defaults.yaml"},
    KeyHelp{"failures.process.addition", "chance that a free place is filled: one, or 24",
            "failures/defaults.yaml"},
    KeyHelp{"failures.process.random_additions", "that chance is drawn once a repeat"},
    KeyHelp{"failures.process.start_hour", "of the day in which the run begins"},
    KeyHelp{"failures.policy", "what the job does about it: a name, or a mapping"},
    KeyHelp{"failures.policy.name", "of the policy"},
    KeyHelp{"failures.policy.rules", "corrected, or those of the published evaluation"},
    KeyHelp{"failures.policy.throughput",
            "samples/s by usable nodes, in place of simulated steps: `{15: 10.2, 30: 21}`"},
    KeyHelp{"failures.policy.throughput.<n>", "samples per second on so many nodes"},
    KeyHelp{"failures.policy.samples_per_step", "samples of a step, beside `throughput`",
            "`training.global_batch_size`"},
    KeyHelp{"failures.policy.restart",
            "from the end of detection until state can be loaded: a time, or times by GPUs",
            "failures/defaults.yaml"},
    KeyHelp{"failures.policy.restart.<n>", "on so many GPUs"},
    KeyHelp{
        "failures.policy.lost",
        "what becomes of the place of a lost node; by default `waited-for` where a process says which nodes "
        "there are"},
    KeyHelp{"failures.policy.spares", "nodes that stand by",
            "the 99th percentile of what is needed (hot-spares), none (elastic)"},
    KeyHelp{"failures.policy.swap", "until a spare has taken a place, or groups are made anew",
            "failures/defaults.yaml"},
    KeyHelp{"failures.policy.state", "where a spare's state comes from"},
    KeyHelp{"failures.policy.backup", "share of a step that copying every shard to a peer adds", "no copies"},
    KeyHelp{"failures.policy.slow_nodes",
            "slow nodes are ignored, met by all rungs, or by some: a word, or a mapping", "`ignore`"},
    KeyHelp{
        "failures.policy.slow_nodes.rungs", "some of rebalance, exchange and restart", "all",
        R"({"anyOf":[{"enum":["rebalance","exchange","restart"]},{"type":"array","items":{"enum":["rebalance","exchange","restart"]}}]})"},
    KeyHelp{"failures.policy.slow_nodes.notice", "so many times as long is noticed",
            "failures/defaults.yaml"},
    KeyHelp{"failures.policy.slow_nodes.lasts", "how long slowness is expected to last",
            "the mean of the fail-slow processes"},
    KeyHelp{"failures.policy.max_failures", "of nodes at once that Oobleck's templates cover"},
    KeyHelp{"failures.policy.cost", "templates by the paper's formula, or by simulated times"},
    KeyHelp{"failures.policy.recompose_on_join", "newcomers join at once, not at the next failure"},
    KeyHelp{"failures.policy.reconfigure", "the whole reconfiguration", "from its parts"},
    KeyHelp{"failures.policy.global_rendezvous", "of all nodes", "failures/defaults.yaml"},
    KeyHelp{"failures.policy.local_rendezvous", "of one pipeline", "failures/defaults.yaml"},
    KeyHelp{"failures.policy.takeover_slowdown", "of a step while a node does the work of two",
            "failures/defaults.yaml"},
    KeyHelp{"failures.policy.rebalance_threshold",
            "2 x overloaded / active nodes beyond which pipelines are made anew", "failures/defaults.yaml"},
    KeyHelp{"failures.policy.pipelines", "without effect: there are as many as nodes fill", "as nodes fill"},
    KeyHelp{"failures.policy.stages", "of a pipeline of nodes, for a replay of a table of throughputs",
            "the plan's; for oobleck and varuna the nodes of the first row"},
    KeyHelp{"failures.policy.checkpoint_every", "steps", "failures/defaults.yaml"},
    KeyHelp{"failures.policy.transient_wait", "whether an error passes, before the job is killed",
            "failures/defaults.yaml"},
    KeyHelp{"failures.policy.announced_wait", "after the checkpoint of an announced loss",
            "failures/defaults.yaml"},
    KeyHelp{"failures.policy.notice",
            "every loss is announced so long before; 0: those that the history announces",
            "failures/defaults.yaml"},
    KeyHelp{"failures.policy.min_replicas",
            "with fewer data replicas the job waits; those of a node are lost together"},
    KeyHelp{"failures.policy.stall", "all replicas wait, detection included", "failures/defaults.yaml"},
    KeyHelp{"failures.policy.degraded", "the lost replica reloads", "failures/defaults.yaml"},
    KeyHelp{"failures.policy.rejoin", "all wait again", "failures/defaults.yaml"},
    KeyHelp{"failures.policy.quorum", "agreeing on who takes part, at each step", "failures/defaults.yaml"},
    KeyHelp{"failures.policy.keep_batch",
            "the others take the lost replica's micro-batches; else the batch shrinks"},
    KeyHelp{"failures.policy.fill_bubbles", "extra work goes into bubbles first"},
    KeyHelp{"failures.checkpoint", "how state is saved"},
    KeyHelp{"failures.checkpoint.mode", "training stands still, goes on beside, or copies stay in memory"},
    KeyHelp{"failures.checkpoint.interval", "`optimal`, `young`, `daly`, a time, or `10 steps`", "`optimal`"},
    KeyHelp{"failures.checkpoint.block", "how long training stands still", "from bytes and bandwidths"},
    KeyHelp{"failures.checkpoint.persist", "in the background, until it is usable",
            "from bytes and bandwidths"},
    KeyHelp{"failures.checkpoint.load", "into all nodes, after a failure", "from bytes and bandwidths"},
    KeyHelp{"failures.checkpoint.bytes", "of the whole job", "from the memory ledger"},
    KeyHelp{"failures.checkpoint.node_write", "of one node to storage", "failures/defaults.yaml"},
    KeyHelp{"failures.checkpoint.node_read", "of one node from storage", "failures/defaults.yaml"},
    KeyHelp{"failures.checkpoint.storage_write", "of all nodes together; 0: no limit",
            "failures/defaults.yaml; none where node_write is given"},
    KeyHelp{"failures.checkpoint.storage_read", "of all nodes together; 0: no limit",
            "failures/defaults.yaml; none where node_read is given"},
    KeyHelp{"failures.checkpoint.snapshot", "from a GPU to its host; 0: PCIe's"},
    KeyHelp{"failures.checkpoint.slowdown", "of training while a checkpoint is written beside it",
            "failures/defaults.yaml"},
    KeyHelp{"failures.checkpoint.copies", "hosts that hold a shard", "failures/defaults.yaml"},
    KeyHelp{"failures.repair", "how long a lost node is away: `none`, `empirical`, a time, or a mapping",
            "failures/defaults.yaml"},
    KeyHelp{"failures.repair.kind", "drawn from recorded times, a constant, or never"},
    KeyHelp{"failures.repair.time", "of kind constant"},
    KeyHelp{"failures.repair.file", "recorded faults: a file of scenarios/traces/, or a path",
            "failures/defaults.yaml"},
    KeyHelp{"failures.detect", "of every cause that is not announced, in place of its own",
            "the causes' own"},
    KeyHelp{"failures.horizon", "how long a run is", "failures/defaults.yaml"},
    KeyHelp{"failures.repeats", "runs, each with failures of its own", "failures/defaults.yaml"}};

constexpr KeyHelp kSweepHelp[] = {
    KeyHelp{"stagecraft", "version of this schema: 1"},
    KeyHelp{"name", "free text, the title of the report", "the file's name"},
    KeyHelp{"base", "the path of a scenario, or the scenario written out", "required",
            R"({"type":["string","object"]})"},
    KeyHelp{"vary",
            "paths and their values, the last changes fastest: a list, or a range; `path, path` with lists "
            "of lists changes several together",
            "required"},
    KeyHelp{"vary.*.from", "the first value, with its unit"},
    KeyHelp{"vary.*.to", "the last value, in the same unit"},
    KeyHelp{"vary.*.scale", "of `points`"},
    KeyHelp{"vary.*.points",
            "how many values; a range that says neither this nor a step is drawn from by `sample`",
            "by `step` or `factor`"},
    KeyHelp{"vary.*.step", "the next value is so much more; without a unit, in that of the ends",
            "by `points`"},
    KeyHelp{"vary.*.factor", "the next value is so many times as much", "by `points`"},
    KeyHelp{"where", "which points count: `\"tensor * pipeline <= 64\"`, or a list that all must hold", "all",
            R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]})"},
    KeyHelp{"sample", "some points of the grid, in place of all"},
    KeyHelp{"sample.method", "each for itself, or spread over every axis"},
    KeyHelp{"sample.points", "how many"},
    KeyHelp{"sample.seed", "of the draw"}};

bool is_mapping_alone(const ReferenceKey& key) {
  return std::ranges::all_of(key.forms, [](const KeyForm& form) {
    return form.kind == KeyForm::Kind::kMap || form.kind == KeyForm::Kind::kMaps;
  });
}

}  // namespace

std::span<const KeyHelp> key_help(DocumentKind kind) {
  if (kind == DocumentKind::kSweep) return kSweepHelp;
  return kScenarioHelp;
}

const KeyHelp* find_help(DocumentKind kind, std::string_view path) {
  const std::span<const KeyHelp> all = key_help(kind);
  const auto found = std::ranges::find(all, path, &KeyHelp::path);
  return found == all.end() ? nullptr : &*found;
}

bool is_required(DocumentKind kind, const ReferenceKey& key) {
  const KeyHelp* help = find_help(kind, key.path);
  return key.required && (help == nullptr || help->fallback.empty());
}

std::string fallback_of(DocumentKind kind, const ReferenceKey& key) {
  const KeyHelp* help = find_help(kind, key.path);
  if (help != nullptr && !help->fallback.empty()) return std::string(help->fallback);
  if (key.required || is_mapping_alone(key)) return "";
  std::set<std::string> all;
  std::vector<std::string> each;
  for (const auto& [choice, fallbacks] : key.fallbacks) {
    for (const std::string& fallback : fallbacks) {
      if (fallback.empty()) continue;
      all.insert(fallback);
      each.push_back(fmt::format("`{}` ({})", fallback, choice));
    }
  }
  if (all.size() == 1) return "`" + *all.begin() + "`";
  return join(each, ", ");
}

std::vector<std::string> gaps_of(DocumentKind kind, const Reference& reference) {
  std::vector<std::string> gaps;
  for (const ReferenceKey& key : reference.keys) {
    if (find_help(kind, key.path) == nullptr) gaps.push_back(key.path + ": no word of help");
    const bool table = key.path.ends_with("<n>");
    if (!key.required && !table && !is_mapping_alone(key) && fallback_of(kind, key).empty())
      gaps.push_back(key.path + ": nobody says what holds without it");
  }
  for (const KeyHelp& help : key_help(kind))
    if (reference.find(help.path) == nullptr)
      gaps.push_back(fmt::format("{}: no reader knows it", help.path));
  return gaps;
}

}  // namespace stagecraft
