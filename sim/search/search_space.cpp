#include "sim/search/search_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/text.hpp"
#include "base/yaml_assign.hpp"
#include "sim/study/compare.hpp"

namespace stagecraft {
namespace {

constexpr int kMostGpus = 1'000'000;
constexpr std::array<std::string_view, 8> kDividing = {
    "parallelism.tensor",         "parallelism.pipeline",      "parallelism.context",
    "parallelism.expert",         "parallelism.expert_tensor", "parallelism.zero_group",
    "parallelism.virtual_stages", "training.micro_batch_size"};
constexpr const char* kContextPath = "parallelism.context";
constexpr const char* kLayersPath = "parallelism.stage_layers";
constexpr std::array<std::string_view, 2> kGpuPaths = {"cluster.nodes", "cluster.gpus"};

// Is "every number that divides" defined of this path?
bool counts_divisors(std::string_view path) {
  return std::ranges::find(kDividing, path) != kDividing.end();
}

// Is one the other, or a part of it? Then values of one say what the other is.
bool meet(std::string_view one, std::string_view other) {
  return varied_twice(one, other).has_value();
}

// Reads one layer after the other: the defaults, the scenario, the command line. What a layer says of a path
// replaces all that those before it say of it, of its parts, and of what it is a part of.
class SpaceReader {
 public:
  SpaceReader(SearchSpace& space, Diagnostics& diagnostics) : space_(space), diagnostics_(diagnostics) {}

  void read(const YamlNode* section, const std::string& path, const SourceLocation& where) {
    varied_.clear();
    YamlMap map(section, path, where, diagnostics_);
    for (const char* key : {"vary", "gpus", "source"}) map.accepts(key, {});  // read by hand
    if (const YamlNode* vary = map.get("vary")) read_axes(*vary, map);
    for (const std::string& fixed : map.texts("fix")) fix(fixed, map.where_of("fix"));
    if (map.has("gpus")) read_gpus(*map.get("gpus"), map);
    const std::array<std::string, 2> batches = {"exact", "at-most"}, stages = {"even", "uneven"};
    space_.batch_at_most = map.choice("batch", batches, space_.batch_at_most ? 1 : 0) == 1;
    space_.uneven_stages = map.choice("stages", stages, space_.uneven_stages ? 1 : 0) == 1;
    if (map.has("price")) read_price(map.text("price"), map.where_of("price"));
    (void)map.get("source");
    map.finish();
  }

  void read(const SearchWords& words) {
    varied_.clear();
    for (const std::string& text : words.vary) read_vary(text);
    for (const std::string& path : words.fix) fix(path, {.file = "--fix " + path});
    if (words.gpus) {
      space_.gpus = parse_gpu_counts(*words.gpus);
      space_.gpus_where = {.file = "--gpus " + *words.gpus};
      if (space_.gpus.empty())
        error(space_.gpus_where, "gpus", "bad-value",
              fmt::format("{} is no list of GPU counts", in_quotes(*words.gpus)),
              "--gpus 256..4096, or 8,16,40");
    }
    if (words.price) read_price(*words.price, {.file = "--price " + *words.price});
    check_gpus();
  }

 private:
  void error(const SourceLocation& where, std::string path, const char* code, std::string message,
             std::string hint) {
    diagnostics_.error({.code = code,
                        .where = where,
                        .path = std::move(path),
                        .message = std::move(message),
                        .hint = std::move(hint)});
  }

  void put(SearchAxis axis) {
    for (const std::string& other : varied_)
      if (const auto twice = varied_twice(axis.path, other))
        return error(axis.where, twice->path, "contradictory", twice->message, twice->hint);
    varied_.push_back(axis.path);
    known_.push_back(axis.path);
    const auto gives_way = [&](const SearchAxis& other) { return meet(axis.path, other.path); };
    const auto at = std::ranges::find_if(space_.axes, gives_way) - space_.axes.begin();
    std::erase_if(space_.axes, gives_way);
    space_.axes.insert(space_.axes.begin() + at, std::move(axis));
  }

  void fix(const std::string& path, const SourceLocation& where) {
    for (const std::string& varied : varied_)
      if (path == varied || path.starts_with(varied + "."))
        return error(where, path, "contradictory", "is varied as well", "leave out --vary, or --fix");
    std::erase_if(space_.axes, [&](const SearchAxis& axis) { return axis.path == path; });
    if (path == kLayersPath) space_.fixed_stage_layers = true;  // which follows the stages unless it is fixed
    if (path == kLayersPath || std::ranges::find(known_, path) != known_.end()) return;
    std::vector<std::string> names;
    for (const SearchAxis& axis : space_.axes) names.push_back(axis.path);
    const auto near = nearest_name(path, names);
    error(where, "search.fix", "unknown-name", fmt::format("{} does not vary", in_quotes(path)),
          near ? fmt::format("did you mean '{}'?", *near) : "these vary: " + join(names, ", "));
  }

  void read_axes(const YamlNode& vary, YamlMap& section) {
    if (vary.kind != YamlNode::Kind::kMap)
      return section.error("vary", "not-a-mapping", "is no mapping of paths to values",
                           "parallelism.tensor: [1, 2, 4]");
    for (const YamlEntry& entry : vary.entries)
      if (auto axis = read_axis(entry.key, entry.value)) put(*std::move(axis));
  }

  std::optional<SearchAxis> read_axis(const std::string& path, const YamlNode& node) {
    SearchAxis axis{.path = path, .values = {}, .where = node.where};
    const bool word = node.kind == YamlNode::Kind::kScalar && node.text == "all" && !node.quoted;
    const bool limits = node.kind == YamlNode::Kind::kMap && counts_divisors(path);  // else it is a value
    if (meet(path, "search")) {
      error(node.where, path, "bad-value", "is a setting of the whole search, which no plan has",
            "give it once: in `search`, or as an option (--gpus, --price)");
      return std::nullopt;
    }
    if (word && !counts_divisors(path)) {
      error(node.where, path, "bad-value", "has no numbers that divide", "list the values: [a, b]");
      return std::nullopt;
    }
    if (limits) {
      YamlMap map(&node, path, node.where, diagnostics_);
      axis.at_most = map.integer("at_most", {.min = 0, .max = kMostGpus, .fallback = 0});
      if (path == kContextPath)
        axis.tokens_each = map.integer("tokens_each", {.min = 0, .max = 1'000'000'000, .fallback = 0});
      map.finish();
    } else if (node.kind == YamlNode::Kind::kSequence) {
      axis.values = node.items;
    } else if (!word) {
      axis.values = {node};
    }
    if (!word && !limits && axis.values.empty()) {
      error(node.where, path, "empty-list", "has no value", "list at least one, or fix it");
      return std::nullopt;
    }
    return axis;
  }

  void read_vary(const std::string& text) {
    const ParsedVary parsed = parse_vary(text);
    const SourceLocation where{.file = "--vary " + text};
    if (!parsed.mistake.empty())
      return error(where, "", "bad-override", parsed.mistake, "--vary path.to.key=value,value");
    std::string list = join(parsed.vary.values, ", ");
    const bool one = parsed.vary.values.size() == 1 && (list == "all" || list.starts_with('{'));
    const auto node = parse_option(one ? list : "[" + list + "]", where, parsed.vary.path, diagnostics_);
    if (!node) return;
    if (auto axis = read_axis(parsed.vary.path, *node)) put(*std::move(axis));
  }

  // Numbers of GPUs and of nodes say the same thing.
  void check_gpus() {
    if (space_.gpus.empty()) return;
    for (const SearchAxis& axis : space_.axes)
      for (const std::string_view path : kGpuPaths)
        if (meet(axis.path, path))
          return error(space_.gpus_where, axis.path, "contradictory",
                       "varies, and the search has numbers of GPUs as well",
                       "leave out --vary, or the numbers of GPUs");
  }

  void read_gpus(const YamlNode& node, YamlMap& map) {
    std::vector<std::string> texts;
    if (node.kind == YamlNode::Kind::kSequence)
      for (const YamlNode& item : node.items) texts.push_back(item.text);
    else
      texts.push_back(node.text);
    space_.gpus = parse_gpu_counts(join(texts, ","));
    space_.gpus_where = map.where_of("gpus");
    if (space_.gpus.empty())
      map.error("gpus", "bad-value", "is no list of GPU counts", "gpus: 256..4096, or [8, 16, 40]");
  }

  void read_price(const std::string& text, const SourceLocation& where) {
    space_.price = parse_gpu_price(text);
    if (!space_.price)
      error(where, "search.price", "bad-value", fmt::format("{} is no price of a GPU", in_quotes(text)),
            "a number, a currency, an hour: 2 USD/h");
  }

  SearchSpace& space_;
  Diagnostics& diagnostics_;
  std::vector<std::string> varied_;  // by this layer, which says of a path one thing
  std::vector<std::string> known_;   // by any layer, so that it may be fixed
};

}  // namespace

const SearchAxis* SearchSpace::find(std::string_view path) const {
  const auto found = std::ranges::find(axes, path, &SearchAxis::path);
  return found == axes.end() ? nullptr : &*found;
}

std::vector<int> parse_gpu_counts(std::string_view text) {
  const auto count = [](std::string_view word) {
    const auto number = parse_integer(word);
    return number && *number >= 1 && *number <= kMostGpus ? static_cast<int>(*number) : 0;
  };
  std::vector<int> counts;
  if (const std::size_t dots = text.find(".."); dots != std::string_view::npos) {
    const int first = count(text.substr(0, dots)), last = count(text.substr(dots + 2));
    if (first == 0 || last < first) return {};
    for (int gpus = first; gpus < last; gpus *= 2) counts.push_back(gpus);
    counts.push_back(last);
    return counts;
  }
  for (const std::string_view word : split(text, ',')) counts.push_back(count(word));
  if (std::ranges::find(counts, 0) != counts.end()) return {};
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

std::optional<GpuPrice> parse_gpu_price(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  if (!text.ends_with("/h")) return std::nullopt;
  const auto number = parse_number(text.substr(0, digits));
  std::string_view currency = text.substr(digits);
  currency.remove_suffix(std::min<std::size_t>(2, currency.size()));
  if (currency.starts_with(' ')) currency.remove_prefix(1);
  const bool letters = !currency.empty() && std::ranges::all_of(currency, [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0;
  });
  if (!number || *number <= 0 || !letters) return std::nullopt;
  return GpuPrice{.per_hour = *number, .currency = std::string(currency)};
}

std::optional<SearchSpace> load_search_space(const std::filesystem::path& defaults, const YamlNode* section,
                                             const SearchWords& words, Diagnostics& diagnostics) {
  SearchSpace space;
  SpaceReader reader(space, diagnostics);
  const auto usual = load_yaml_file(defaults, diagnostics);
  if (!usual) return std::nullopt;
  reader.read(&*usual, "", usual->where);
  for (SearchAxis& axis : space.axes) axis.usual = true;
  if (section != nullptr) reader.read(section, "search", section->where);
  reader.read(words);
  return space;
}

}  // namespace stagecraft
