#include "formats/import_entries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/ceil_div.hpp"
#include "base/text.hpp"
#include "base/yaml.hpp"
#include "formats/input_text.hpp"
#include "models/load_model.hpp"
#include "models/model_spec.hpp"

namespace stagecraft {

namespace {

constexpr std::size_t kLineWidth = 100;

}  // namespace

FragmentEntry entry(std::string key, std::int64_t value, const ImportSource& source) {
  return {.key = std::move(key), .value = fragment_number(value, source.where), .comment = source.comment};
}

FragmentEntry flag_entry(std::string key, bool value, const ImportSource& source) {
  return {.key = std::move(key), .value = fragment_flag(value, source.where), .comment = source.comment};
}

FragmentEntry text_entry(std::string key, std::string_view value, const ImportSource& source) {
  return {.key = std::move(key), .value = fragment_text(value, source.where), .comment = source.comment};
}

FragmentEntry share_entry(std::string key, double value, const ImportSource& source) {
  FragmentEntry share = entry(std::move(key), 0, source);
  share.value.text = fmt::format("{}", value);
  return share;
}

FragmentEntry map_entry(std::string key, std::vector<FragmentEntry> entries) {
  FragmentEntry map{.key = std::move(key)};
  if (!entries.empty()) map.value.where = entries.front().value.where;
  map.entries = std::move(entries);
  return map;
}

namespace {

// N where each N-th layer is listed, and no other: N - 1, 2 N - 1 and so on. 0 where there is no such N.
std::int64_t period_of(const std::vector<std::int64_t>& listed, std::int64_t layers) {
  if (listed.empty()) return 0;
  const std::int64_t period = listed.front() + 1;
  if (period < 2 || std::ssize(listed) != layers / period) return 0;
  for (std::size_t i = 0; i < listed.size(); ++i)
    if (listed[i] != static_cast<std::int64_t>(i + 1) * period - 1) return 0;
  return period;
}

}  // namespace

FragmentEntry sliding_window_entry(FragmentEntry tokens, const std::vector<std::int64_t>& full,
                                   std::int64_t layers, const ImportSource& source) {
  Entries entries = {std::move(tokens)};
  const std::int64_t period = period_of(full, layers);
  if (period > 0)
    entries.push_back(entry("full_every", period, source));
  else if (!full.empty())
    entries.push_back(
        {.key = "full_layers", .value = fragment_numbers(full, source.where), .comment = source.comment});
  return map_entry("sliding_window", std::move(entries));
}

const FragmentEntry* find_entry(const Entries& entries, std::string_view key) {
  const auto found = std::ranges::find(entries, key, &FragmentEntry::key);
  return found == entries.end() ? nullptr : &*found;
}

void add_section(Fragment& fragment, std::string key, Entries entries) {
  if (!entries.empty()) fragment.entries.push_back(map_entry(std::move(key), std::move(entries)));
}

std::vector<std::string> wrapped(const std::string& title, const std::vector<std::string>& items) {
  std::vector<std::string> lines;
  std::string line = title;
  bool empty = true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? "," : "");
    if (!empty && line.size() + 1 + item.size() > kLineWidth) {
      lines.push_back(std::exchange(line, "  "));
      empty = true;
    }
    if (!empty) line += ' ';
    line += item;
    empty = false;
  }
  lines.push_back(std::move(line));
  return lines;
}

Diagnostic contradicted_option(const std::string& option, std::string_view asked, std::string_view said,
                               const SourceLocation& where) {
  return {.code = "contradiction",
          .where = where,
          .path = option,
          .message = fmt::format("{} is asked for, and the file says {}", asked, said),
          .hint = fmt::format("leave {} out: it is for files that do not say", option)};
}

std::int64_t padded_vocab(std::int64_t tokens, std::int64_t step) {
  return ceil_div(tokens, step) * step;
}

std::optional<std::string> priced_as_adam(std::string_view optimizer) {
  const std::string name = lower_case(optimizer);
  if (name.empty() || name == "adam" || name == "adamw") return std::nullopt;
  return in_quotes(optimizer) + " is not modelled: Adam's states and step are counted";
}

std::string_view megatron_on_deepspeed(bool flash, std::int64_t zero_stage) {
  return flash && zero_stage < 3 ? "megatron-lm-2021" : "megatron-deepspeed-2021";
}

bool copies_buckets(std::int64_t zero_stage, std::int64_t replicas) {
  return zero_stage < 3 && replicas != 1;
}

void add_bucket_copies(std::int64_t zero_stage, std::string_view precision, std::int64_t replicas,
                       Entries& memory) {
  if (!copies_buckets(zero_stage, replicas) || (precision != "fp16" && precision != "bf16")) return;
  memory.push_back(flag_entry("bucket_copies", true, {.comment = "DeepSpeed's optimizers", .where = {}}));
}

TransformerSpec main_model(TransformerSpec model) {
  model.mtp_layers = 0;
  return model;
}

std::optional<std::string> parameters_line(const std::vector<FragmentEntry>& model, const std::string& file,
                                           Diagnostics& diagnostics) {
  const SourceLocation where{file, 0, 0};
  const YamlNode tree = to_tree(model, where);
  Diagnostics found;
  YamlMap map(&tree, "model", where, found);
  const ModelSpec spec = load_model(map);
  diagnostics.add_all(found);
  const auto* transformer = std::get_if<TransformerSpec>(&spec);
  if (found.has_errors() || transformer == nullptr) return std::nullopt;
  const std::int64_t count = parameter_count(main_model(*transformer));
  const std::int64_t extra = parameter_count(*transformer) - count;
  std::string line = fmt::format("{} parameters ({})", with_thousands(count), human_count(count));
  if (extra > 0) line += fmt::format(", and {} for multi-token prediction", with_thousands(extra));
  return line;
}

}  // namespace stagecraft
