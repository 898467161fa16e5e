// Common parts of importers of jobs: the user's additions to a file, and entries with their origin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "formats/fragment.hpp"

namespace stagecraft {

struct TransformerSpec;  // models/model_spec.hpp

// Settings from the user that no option of the job contains.
struct ImportRequest {
  std::optional<std::int64_t> gpus = {};
  std::optional<std::int64_t> vocab = {};  // before padding
  std::optional<std::string> node = {};    // a node preset
  std::int64_t node_gpus = 8;              // of that node; every preset has 8
};

// Source of a value.
struct ImportSource {
  std::string comment = {};
  SourceLocation where = {};
};

[[nodiscard]] FragmentEntry entry(std::string key, std::int64_t value, const ImportSource& source);
[[nodiscard]] FragmentEntry flag_entry(std::string key, bool value, const ImportSource& source);
[[nodiscard]] FragmentEntry text_entry(std::string key, std::string_view value, const ImportSource& source);
// A bare number with decimals.
[[nodiscard]] FragmentEntry share_entry(std::string key, double value, const ImportSource& source);
[[nodiscard]] FragmentEntry map_entry(std::string key, std::vector<FragmentEntry> entries);
// model.sliding_window: `tokens`, and the layers that attend to all tokens, by a rule where one says them.
[[nodiscard]] FragmentEntry sliding_window_entry(FragmentEntry tokens, const std::vector<std::int64_t>& full,
                                                 std::int64_t layers, const ImportSource& source);
// The entry of a key; nullptr where there is none.
[[nodiscard]] const FragmentEntry* find_entry(const Entries& entries, std::string_view key);
// Adds the mapping to the fragment, unless there is nothing in it.
void add_section(Fragment& fragment, std::string key, Entries entries);
// Lines of at most 100 characters of `items`, the first after `title`.
[[nodiscard]] std::vector<std::string> wrapped(const std::string& title,
                                               const std::vector<std::string>& items);

// The error for an importer option that contradicts the file. Such options only supply values that the file
// lacks.
[[nodiscard]] Diagnostic contradicted_option(const std::string& option, std::string_view asked,
                                             std::string_view said, const SourceLocation& where);

// Lists the vocabulary as missing in the fragment, and warns of it at the reader of the importer.
template <class Reader>
void miss_vocabulary(Reader& reader, Fragment& fragment) {
  fragment.missing.emplace_back(
      "vocab: …   # under model: tokens of the tokenizer, padded; or import with --vocab N");
  reader.missing(Severity::kWarning, "model.vocab", "nothing says how large the vocabulary is", "--vocab N");
}

// Tokens of a vocabulary with those that Megatron-LM and GPT-NeoX add to split it evenly.
[[nodiscard]] std::int64_t padded_vocab(std::int64_t tokens, std::int64_t step);

// Note for an optimizer that is priced as Adam but is another; nullopt for Adam and AdamW, and without a
// name.
[[nodiscard]] std::optional<std::string> priced_as_adam(std::string_view optimizer);

// The preset of scenarios/software/ for layers of Megatron-LM on DeepSpeed. Jobs with flash attention, of 2023
// and later, show nothing of what a tensor collective took in 2021; of ZeRO 3 there is one preset.
[[nodiscard]] std::string_view megatron_on_deepspeed(bool flash, std::int64_t zero_stage);
// Whether DeepSpeed's optimizers of 16 bit copy gradients to buckets: not that of ZeRO 3, nor, as far as is
// known (0: not), where there is one replica.
[[nodiscard]] bool copies_buckets(std::int64_t zero_stage, std::int64_t replicas);
// Adds to `memory` those copies (`bucket_copies`), where the precision has 16 bit.
void add_bucket_copies(std::int64_t zero_stage, std::string_view precision, std::int64_t replicas,
                       Entries& memory);

// The model without its layers of multi-token prediction, which published numbers of parameters leave out.
[[nodiscard]] TransformerSpec main_model(TransformerSpec model);

// "671,026,404,352 parameters (671.0 B)": the count beside the name exposes a wrong file. nullopt after a
// mistake that only the whole model shows, which is reported.
[[nodiscard]] std::optional<std::string> parameters_line(const std::vector<FragmentEntry>& model,
                                                         const std::string& file, Diagnostics& diagnostics);

}  // namespace stagecraft
