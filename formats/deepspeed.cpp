#include "formats/deepspeed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_reader.hpp"
#include "base/text.hpp"
#include "formats/deepspeed_neox.hpp"
#include "formats/deepspeed_reader.hpp"
#include "formats/deepspeed_sections.hpp"
#include "formats/input_text.hpp"

namespace stagecraft {

namespace {

std::optional<Diagnostic> template_mark(std::string_view text, const std::string& name) {
  const std::size_t at = std::min(text.find("{%"), text.find("{{"));
  if (at == std::string_view::npos) return std::nullopt;
  const auto line =
      static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) + 1;
  return Diagnostic{.code = "template",
                    .where = {name, line, 0},
                    .message = "is a template, not a configuration",
                    .hint = "fill it in first: import what DeepSpeed is given"};
}

// By its name, or by a comment where nothing is called JSON: then what the reader of YAML says is to the point.
bool is_yaml(const std::string& name, const Diagnostics& as_json) {
  if (contains_any(name, {".yml", ".yaml"})) return true;
  return !contains_any(name, {".json"}) &&
         std::ranges::any_of(as_json.items(), [](const Diagnostic& d) { return d.code == "json-comment"; });
}

Diagnostic no_configuration(const std::string& name) {
  return {.code = "not-a-configuration",
          .where = {name, 0, 0},
          .message = "holds no configuration of DeepSpeed or GPT-NeoX"};
}

std::string open_line(const SettingsReader& reader, const char* key, std::string_view value,
                      const char* path) {
  return fmt::format("{}: {}   # under training{}", key, value,
                     reader.is_auto(path) ? ": \"auto\" is filled in by the trainer" : "");
}

constexpr std::int64_t kOfANode = 8;  // GPUs of the node that is offered

// What is offered for what is missing: numbers that go together.
struct Offer {
  std::int64_t data = 1, gpus = 1;
  std::int64_t global = 256, micro = 1;
};

Offer offer_of(const Batch& batch, std::int64_t tensor, std::optional<std::int64_t> gpus) {
  const std::int64_t steps = batch.steps.value_or(1);
  Offer offer{.data = batch.data.value_or(std::max<std::int64_t>(1, kOfANode / tensor)),
              .micro = batch.micro.value_or(1)};
  if (batch.global && !batch.data)
    while (offer.data > 1 && *batch.global % (offer.data * offer.micro * steps) != 0) --offer.data;
  offer.gpus = gpus.value_or(offer.data * tensor);
  const std::int64_t step = offer.micro * steps * offer.data;
  if (batch.steps || offer.global % step != 0) offer.global = step;
  if (batch.global && !batch.micro && batch.steps)
    offer.micro = std::max<std::int64_t>(1, *batch.global / (steps * offer.data));
  return offer;
}

// "cluster: {node: dgx-a100-80gb, nodes: 1}"
std::string open_cluster(const Offer& offer) {
  const std::string size = offer.gpus % kOfANode == 0 ? fmt::format("nodes: {}", offer.gpus / kOfANode)
                           : offer.gpus < kOfANode    ? fmt::format("gpus: {}", offer.gpus)
                                                      : "nodes: …";
  const std::string many = size.ends_with("…") ? fmt::format(" for {} GPUs", offer.gpus) : "";
  return fmt::format("cluster: {{node: dgx-a100-80gb, {}}}   # or import with --gpus N --node NAME{}", size,
                     many);
}

// With what the configuration says of it.
std::string open_global(const SettingsReader& reader, const Batch& batch, const Offer& offer) {
  const std::string line =
      open_line(reader, "global_batch_size", std::to_string(offer.global), "train_batch_size");
  if (!batch.steps) return line;
  return fmt::format("{}; micro-batch {} × accumulation {} × {} data ranks", line, offer.micro, *batch.steps,
                     offer.data);
}

Entries training_of(SettingsReader& reader, const Batch& batch, const Offer& offer, std::int64_t zero_stage,
                    Fragment& fragment) {
  Entries training;
  if (batch.global)
    training.push_back(
        entry("global_batch_size", *batch.global,
              reader.source_or("train_batch_size", "micro-batch × accumulation × data ranks")));
  else
    fragment.missing.push_back(open_global(reader, batch, offer));
  if (batch.micro)
    training.push_back(entry("micro_batch_size", *batch.micro,
                             reader.source_or("train_micro_batch_size_per_gpu",
                                              "train_batch_size / (accumulation × data ranks)")));
  else
    fragment.missing.push_back(
        open_line(reader, "micro_batch_size", std::to_string(offer.micro), "train_micro_batch_size_per_gpu"));
  fragment.missing.emplace_back("sequence_length: 2048   # under training");
  read_precision(reader, zero_stage, training);
  if (find_entry(training, "precision") == nullptr)
    fragment.missing.push_back(open_line(reader, "precision", "bf16", "bf16.enabled"));
  fragment.missing.emplace_back("recompute: none   # under training: the model decides, not DeepSpeed");
  return training;
}

bool has_auto(const YamlNode& node) {
  return (node.kind == YamlNode::Kind::kScalar && node.text == "auto") ||
         std::ranges::any_of(node.entries, [](const YamlEntry& e) { return has_auto(e.value); });
}

// Only the trainer of Transformers fills in "auto"; otherwise the model may be of any make.
void add_software(const SettingsReader& reader, Entries& options, Fragment& fragment) {
  if (has_auto(reader.root()))
    return options.push_back(text_entry(
        "software", "deepspeed", {.comment = "\"auto\" is for the trainer of Transformers", .where = {}}));
  fragment.missing.emplace_back(
      "software: deepspeed   # under options: of Transformers; Megatron-LM on DeepSpeed has its own");
}

std::optional<Fragment> import_plain(SettingsReader& reader, const ImportRequest& request) {
  Fragment fragment;
  fragment.head.push_back(
      fmt::format("From {}: a configuration of DeepSpeed, which holds no model", reader.file()));
  fragment.entries.push_back(entry("stagecraft", 1, {}));
  fragment.missing.emplace_back("model: gpt3-175b   # a name, a config.json, or a mapping");
  const std::int64_t tensor = reader.integer("tensor_parallel.autotp_size", 0, 1'000'000).value_or(0);
  std::optional<std::int64_t> ranks = request.gpus;
  if (ranks && tensor > 1) ranks = std::max<std::int64_t>(1, *ranks / tensor);
  const Batch batch = read_batch(reader, ranks, std::nullopt);
  const Offer offer = offer_of(batch, std::max<std::int64_t>(1, tensor), request.gpus);

  Entries options, offload, overlap;
  const ZeroSettings zero = read_zero(reader, options, offload);
  if (request.gpus)
    add_section(fragment, "cluster", read_cluster(reader, request, *request.gpus));
  else
    fragment.missing.push_back(open_cluster(offer));
  Entries parallelism;
  if (tensor > 1)
    parallelism.push_back(entry("tensor", tensor, reader.source("tensor_parallel.autotp_size")));
  if (batch.data && !request.gpus)
    parallelism.push_back(entry("data", *batch.data,
                                {.comment = "train_batch_size / (micro-batch × accumulation)", .where = {}}));
  parallelism.push_back(entry("zero_stage", zero.stage, zero.source));
  if (const auto group = reader.integer("zero_optimization.mics_shard_size", -1); group && *group > 0)
    parallelism.push_back(entry("zero_group", *group, reader.source("zero_optimization.mics_shard_size")));
  add_section(fragment, "parallelism", std::move(parallelism));
  add_software(reader, options, fragment);
  Entries training = training_of(reader, batch, offer, zero.stage, fragment), memory;
  if (const FragmentEntry* said = find_entry(training, "precision"))
    add_bucket_copies(zero.stage, said->value.text, batch.data.value_or(0), memory);
  else if (copies_buckets(zero.stage, batch.data.value_or(0)))
    fragment.missing.emplace_back(
        "memory: {bucket_copies: true}   # under options, of fp16 and bf16: DeepSpeed's optimizers");
  if (!memory.empty()) options.push_back(map_entry("memory", std::move(memory)));
  add_section(fragment, "training", std::move(training));
  overlap.push_back(flag_entry("gradients", zero.overlaps_gradients, zero.overlap_source));
  // Stages 1 and 2 gather the parameters at the end of the step, stage 3 layer by layer.
  if (zero.stage > 0)
    overlap.push_back(
        flag_entry("parameters", zero.stage == 3 && zero.overlaps_gradients, zero.overlap_source));
  add_section(fragment, "overlap", std::move(overlap));
  add_section(fragment, "options", std::move(options));
  add_section(fragment, "offload", std::move(offload));
  read_optimizer(reader);
  fragment.ignored = reader.finish();
  fragment.assumed = reader.assumed;
  return fragment;
}

}  // namespace

std::optional<Fragment> import_deepspeed(std::string_view text, const std::string& name,
                                         const ImportRequest& request, Diagnostics& diagnostics) {
  if (auto mark = template_mark(text, name)) {
    diagnostics.error(std::move(*mark));
    return std::nullopt;
  }
  const ErrorWatch watch(diagnostics);
  Diagnostics as_json, as_yaml;
  std::optional<YamlNode> root = parse_json(text, name, as_json);
  if (!root) {
    root = parse_yaml(text, name, as_yaml);  // GPT-NeoX: JSON with comments
    if (root && !is_neox(*root)) root.reset();
  }
  if (!root || root->kind != YamlNode::Kind::kMap) {
    const bool yaml = is_yaml(name, as_json);
    diagnostics.add_all(yaml ? as_yaml : as_json);
    if (watch.clean()) diagnostics.error(no_configuration(name));
    return std::nullopt;
  }
  Diagnostics found;
  SettingsReader reader(*root, name, found);
  std::optional<Fragment> fragment =
      is_neox(*root) ? import_neox(reader, request, found) : import_plain(reader, request);
  if (!reader.knows_any()) {
    diagnostics.error(no_configuration(name));
    return std::nullopt;
  }
  diagnostics.add_all(found);
  if (!watch.clean()) return std::nullopt;
  return fragment;
}

}  // namespace stagecraft
