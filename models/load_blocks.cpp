#include "models/load_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/ceil_div.hpp"
#include "base/text.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kMaxGroups = 4096;  // expert groups: their number is of the order of nodes

std::vector<std::int64_t> first_layers(YamlMap& map, std::int64_t layers) {
  const std::int64_t first = map.integer("first_dense_layers", {.min = 0, .max = kMaxLayers, .fallback = 0});
  if (first >= layers) {
    map.error("first_dense_layers", "no-expert-layer",
              fmt::format("{} leaves no layer with experts: the model has {}", first, layers),
              fmt::format("use at most {}, or leave experts out", layers - 1));
    return {};
  }
  std::vector<std::int64_t> dense(static_cast<std::size_t>(first));
  std::iota(dense.begin(), dense.end(), 0);
  return dense;
}

// Layers that are not of the kind that a block of the model is about.
struct OtherLayers {
  std::string_view listed;     // key of their list
  std::string_view by_rule;    // key that says them by a rule
  std::string_view none_left;  // code where they are all layers
  std::string_view way_out;    // hint of that
};

constexpr OtherLayers kDenseLayers{.listed = "dense_layers",
                                   .by_rule = "first_dense_layers",
                                   .none_left = "no-expert-layer",
                                   .way_out = "leave a layer with experts, or leave experts out"};
constexpr OtherLayers kFullLayers{.listed = "full_layers",
                                  .by_rule = "full_every",
                                  .none_left = "no-windowed-layer",
                                  .way_out = "leave a layer with the window, or leave sliding_window out"};

std::vector<std::int64_t> listed_layers(YamlMap& map, std::int64_t layers, const OtherLayers& others) {
  const ErrorWatch watch(map.diagnostics());
  std::vector<std::int64_t> listed = map.integers(others.listed, {.min = 0, .max = layers - 1});
  if (!watch.clean()) return {};
  const auto late = std::ranges::adjacent_find(listed, std::greater_equal{});
  if (late != listed.end()) {
    map.error(others.listed, "bad-order", fmt::format("{} stands behind {}", late[1], late[0]),
              "name each layer once, in ascending order, from 0");
    return {};
  }
  if (static_cast<std::int64_t>(listed.size()) == layers) {
    map.error(others.listed, std::string(others.none_left),
              fmt::format("names all {} layers of the model", layers), std::string(others.way_out));
    return {};
  }
  return listed;
}

// `by_rule` reads the key that says them by a rule.
template <class ByRule>
std::vector<std::int64_t> other_layers(YamlMap& map, std::int64_t layers, const OtherLayers& others,
                                       ByRule by_rule) {
  const bool listed = map.has(others.listed);
  if (listed && map.has(others.by_rule)) {
    map.error(others.by_rule, "contradiction",
              fmt::format("stands beside {}, which says the same thing", others.listed),
              "keep one of the two");
    return {};
  }
  return listed ? listed_layers(map, layers, others) : by_rule(map, layers);
}

// Each `full_every`th layer, as Megatron-LM's window_attn_skip_freq counts them.
std::vector<std::int64_t> each_nth_layer(YamlMap& map, std::int64_t layers) {
  if (!map.has("full_every")) return {};
  const std::int64_t every = map.integer("full_every", {.min = 2, .max = kMaxLayers, .fallback = 2});
  std::vector<std::int64_t> full;
  for (std::int64_t layer = every - 1; layer < layers; layer += every) full.push_back(layer);
  return full;
}

void load_shared_experts(YamlMap& map, ExpertsSpec& experts) {
  experts.shared = map.integer("shared", {.min = 0, .max = kMaxCount, .fallback = 0});
  const std::int64_t width = read_count(map, "shared_ffn_hidden", experts.ffn_hidden);
  experts.shared_ffn_hidden = experts.shared > 0 ? width : 0;
  experts.shared_gate = map.boolean("shared_gate", false);
  if (experts.shared > 0) return;
  const std::string hint = "give shared, or leave this out";
  if (map.has("shared_ffn_hidden"))
    map.error("shared_ffn_hidden", "contradiction", "is the width of shared experts, but there are none",
              hint);
  if (experts.shared_gate)
    map.error("shared_gate", "contradiction", "gates the output of shared experts, but there are none", hint);
}

// Defaults to all experts of all groups.
void load_groups(YamlMap& map, ExpertsSpec& experts, bool known) {
  const ErrorWatch watch(map.diagnostics());
  experts.groups = map.integer("groups", {.min = 1, .max = kMaxGroups, .fallback = 1});
  experts.top_groups = read_count(map, "top_groups", experts.groups);
  if (!known || !watch.clean()) return;
  if (experts.count % experts.groups != 0) {
    map.error("groups", "not-divisible",
              fmt::format("{} does not divide experts.count = {}", experts.groups, experts.count),
              "groups are of one size: use a number that divides it");
  } else if (map.has("top_groups") && !map.has("groups")) {
    map.error("top_groups", "needs-another-key", "chooses among groups, but there are none",
              "give groups, or leave this out");
  } else if (experts.top_groups > experts.groups) {
    map.error("top_groups", "out-of-range",
              fmt::format("{} is more than experts.groups = {}", experts.top_groups, experts.groups),
              fmt::format("use 1 to {}", experts.groups));
  } else if (experts.top_k <= experts.count && experts.top_k > experts.candidates()) {
    const std::int64_t size = experts.count / experts.groups;
    map.error("top_groups", "out-of-range",
              fmt::format("{} × {} experts to choose from are fewer than top_k = {}", experts.top_groups,
                          size, experts.top_k),
              fmt::format("use at least {}", ceil_div(experts.top_k, size)));
  }
}

// An expert gets at most all T tokens: E / K times an even share, T K / E.
void load_balance(YamlMap& map, ExpertsSpec& experts) {
  const double most = static_cast<double>(experts.count) / static_cast<double>(experts.top_k);
  const ErrorWatch watch(map.diagnostics());
  experts.capacity_factor = map.number("capacity_factor", {.min = 0, .max = most, .fallback = 0});
  const bool read = map.has("capacity_factor") && watch.clean();
  if (read && experts.capacity_factor == 0)
    map.error("capacity_factor", "out-of-range", "is not above 0", "leave it out: no token is dropped then");
  experts.pad_to_capacity = map.boolean("pad_to_capacity", false);
  if (experts.pad_to_capacity && !map.has("capacity_factor"))
    map.error("pad_to_capacity", "needs-another-key", "pads experts to a capacity, but there is none",
              "give capacity_factor, or leave this out");
  experts.imbalance = map.number("imbalance", {.min = 1, .max = most, .fallback = 1});
}

}  // namespace

std::int64_t read_count(YamlMap& map, std::string_view key, std::optional<std::int64_t> fallback) {
  return map.integer(key, {.min = 1, .max = kMaxCount, .fallback = fallback});
}

std::int64_t assumed_count(YamlMap& map, std::string_view key, std::int64_t fallback, std::string_view why) {
  if (map.present() && !map.has(key))
    map.warning(key, "assumed", fmt::format("is not given: {}, {}", with_thousands(fallback), why),
                fmt::format("give {}", key));
  return read_count(map, key, fallback);
}

std::optional<ExpertsSpec> load_experts(YamlMap& model, std::int64_t layers,
                                        std::optional<std::int64_t> width) {
  if (!model.has("experts")) return std::nullopt;
  YamlMap map = model.map("experts");
  const ErrorWatch watch(map.diagnostics());
  ExpertsSpec experts{.count = read_count(map, "count"),
                      .top_k = read_count(map, "top_k"),
                      .ffn_hidden = width ? assumed_count(map, "ffn_hidden", *width, "the model's ffn_hidden")
                                          : read_count(map, "ffn_hidden")};
  const bool known = watch.clean();
  if (known && experts.top_k > experts.count) {
    map.error("top_k", "out-of-range",
              fmt::format("{} is more than experts.count = {}", experts.top_k, experts.count),
              fmt::format("use 1 to {}", experts.count));
  }
  load_groups(map, experts, known);
  load_shared_experts(map, experts);
  experts.router_bias = map.boolean("router_bias", false);
  experts.dense_layers = other_layers(map, layers, kDenseLayers, first_layers);
  if (!known) experts.count = kMaxCount;  // the placeholder of a refused count must not bound anything
  load_balance(map, experts);
  map.finish();
  return experts;
}

std::optional<SlidingWindowSpec> load_sliding_window(YamlMap& model, std::int64_t layers) {
  if (!model.has("sliding_window")) return std::nullopt;
  YamlMap map = model.map("sliding_window");
  SlidingWindowSpec window{.tokens = read_count(map, "tokens"),
                           .full_layers = other_layers(map, layers, kFullLayers, each_nth_layer)};
  map.finish();
  return window;
}

std::optional<LatentAttentionSpec> load_latent_attention(YamlMap& model) {
  if (!model.has("latent_attention")) return std::nullopt;
  YamlMap map = model.map("latent_attention");
  const LatentAttentionSpec latent{
      .query_rank = map.integer("query_rank", {.min = 0, .max = kMaxCount, .fallback = 0}),
      .kv_rank = read_count(map, "kv_rank"),
      .nope_head_size = read_count(map, "nope_head_size"),
      .rope_head_size = read_count(map, "rope_head_size"),
      .value_head_size = read_count(map, "value_head_size")};
  map.finish();
  return latent;
}

}  // namespace stagecraft
