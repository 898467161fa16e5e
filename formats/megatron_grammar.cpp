#include "formats/megatron_grammar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace stagecraft {

namespace {

constexpr int kMaxDepth = 16;

// A number, or a list of numbers.
struct Value {
  bool is_list = false;
  std::int64_t number = 0;
  std::vector<std::int64_t> items = {};
};

// sum := product {'+' product}; product := atom {'*' atom}; atom := integer | '(' sum ')' | '[' sum {',' sum}
// ']'
class PatternReader {
 public:
  PatternReader(std::string_view text, std::string& mistake) : text_(text), mistake_(mistake) {}

  std::optional<Value> read() {
    Value value = sum(0);
    skip_blanks();
    if (mistake_.empty() && at_ != text_.size()) fail("what follows it is not part of a list expression");
    return mistake_.empty() ? std::optional(std::move(value)) : std::nullopt;
  }

 private:
  void fail(std::string_view what) {
    if (mistake_.empty()) mistake_ = fmt::format("at character {}: {}", at_ + 1, what);
  }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Value sum(int depth) {
    Value left = product(depth);
    while (mistake_.empty() && take('+')) left = added(std::move(left), product(depth));
    return left;
  }

  Value product(int depth) {
    Value left = atom(depth);
    while (mistake_.empty() && take('*')) left = multiplied(std::move(left), atom(depth));
    return left;
  }

  Value atom(int depth) {
    if (depth > kMaxDepth) return fail("nested too deeply"), Value{};
    if (take('(')) {
      Value value = sum(depth + 1);
      if (mistake_.empty() && !take(')')) fail("a ')' is missing");
      return value;
    }
    if (take('[')) return list(depth);
    skip_blanks();
    if (at_ >= text_.size() || !is_digit(text_[at_])) return fail("a number or a list belongs here"), Value{};
    Value value;
    while (at_ < text_.size() && is_digit(text_[at_])) {
      value.number = std::min(value.number * 10 + (text_[at_] - '0'), kMaxPatternLayers + 1);
      ++at_;
    }
    return value;
  }

  Value list(int depth) {
    Value value{.is_list = true};
    if (take(']')) return value;
    do {
      skip_blanks();
      if (at_ < text_.size() && text_[at_] == ']') break;  // Python takes a comma at the end
      const Value item = sum(depth + 1);
      if (item.is_list) fail("a list inside a list");
      value.items.push_back(item.number);
    } while (mistake_.empty() && take(','));
    if (mistake_.empty() && !take(']')) fail("a ']' is missing");
    return value;
  }

  Value added(Value left, Value right) {
    if (left.is_list != right.is_list) return fail("a list and a number cannot be added"), Value{};
    left.number = std::min(left.number + right.number, kMaxPatternLayers + 1);
    left.items.insert(left.items.end(), right.items.begin(), right.items.end());
    check_size(left);
    return left;
  }

  Value multiplied(Value left, Value right) {
    if (left.is_list && right.is_list) return fail("two lists cannot be multiplied"), Value{};
    if (right.is_list) std::swap(left, right);
    if (!left.is_list) return Value{.number = std::min(left.number * right.number, kMaxPatternLayers + 1)};
    const auto size = static_cast<std::int64_t>(left.items.size());
    if (size * right.number > kMaxPatternLayers) return fail("the list becomes too long"), Value{};
    Value repeated{.is_list = true};
    for (std::int64_t i = 0; i < right.number; ++i)
      repeated.items.insert(repeated.items.end(), left.items.begin(), left.items.end());
    return repeated;
  }

  void check_size(const Value& value) {
    if (static_cast<std::int64_t>(value.items.size()) > kMaxPatternLayers) fail("the list becomes too long");
  }

  std::string_view text_;
  std::string& mistake_;
  std::size_t at_ = 0;
};

// Writes the repetitions of a layout out.
class LayoutReader {
 public:
  LayoutReader(std::string_view text, std::string& mistake) : text_(text), mistake_(mistake) {}

  std::string read() {
    std::string flat = sequence(0);
    if (mistake_.empty() && at_ != text_.size()) fail("a ')' without its '('");
    return flat;
  }

 private:
  void fail(std::string_view what) {
    if (mistake_.empty()) mistake_ = fmt::format("at character {}: {}", at_ + 1, what);
  }

  std::string sequence(int depth) {
    std::string flat;
    while (mistake_.empty() && at_ < text_.size() && text_[at_] != ')') {
      const char c = text_[at_];
      if (c == ',' || c == ' ') {
        ++at_;
        continue;
      }
      flat += repeated(unit(depth));
      if (static_cast<std::int64_t>(flat.size()) > kMaxPatternLayers) fail("the layout becomes too long");
    }
    return flat;
  }

  std::string unit(int depth) {
    const char c = text_[at_];
    if (c == '(') {
      if (depth > kMaxDepth) return fail("nested too deeply"), "";
      ++at_;
      std::string inner = sequence(depth + 1);
      if (!mistake_.empty()) return "";
      if (at_ >= text_.size()) return fail("a ')' is missing"), "";
      ++at_;
      return inner;
    }
    if (std::string_view("EtmL|").find(c) == std::string_view::npos)
      return fail(fmt::format("{} is none of E, t, m, L and |", in_quotes(std::string_view(&c, 1)))), "";
    ++at_;
    return {c};
  }

  std::string repeated(const std::string& once) {
    if (!mistake_.empty() || at_ >= text_.size() || text_[at_] != '*') return once;
    ++at_;
    if (at_ >= text_.size() || !is_digit(text_[at_])) return fail("a number belongs after *"), "";
    std::int64_t times = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_)
      times = std::min(times * 10 + (text_[at_] - '0'), kMaxPatternLayers + 1);
    if (static_cast<std::int64_t>(once.size()) * times > kMaxPatternLayers)
      return fail("the layout becomes too long"), "";
    std::string flat;
    for (std::int64_t i = 0; i < times; ++i) flat += once;
    return flat;
  }

  std::string_view text_;
  std::string& mistake_;
  std::size_t at_ = 0;
};

// What the numbers of a pattern stand for.
struct PatternWords {
  std::string_view distance;   // "between layers with experts"
  std::string_view zero, one;  // kinds of layers
};

// `of_number(n, i)` says it of layer i, from 0, where the pattern is a number.
template <class OfNumber>
std::optional<std::vector<bool>> read_pattern(std::string_view text, std::int64_t layers,
                                              const PatternWords& words, std::string& mistake,
                                              OfNumber of_number) {
  mistake.clear();
  const std::optional<Value> value = PatternReader(text, mistake).read();
  if (!value) return std::nullopt;
  std::vector<bool> pattern;
  if (!value->is_list) {
    if (value->number < 1) return mistake = fmt::format("0 is no distance {}", words.distance), std::nullopt;
    for (std::int64_t i = 0; i < layers; ++i) pattern.push_back(of_number(value->number, i));
    return pattern;
  }
  const auto entries = static_cast<std::int64_t>(value->items.size());
  if (entries != layers) {
    mistake = fmt::format("{} entries for {} layers", entries, layers);
    return std::nullopt;
  }
  for (const std::int64_t item : value->items) {
    if (item != 0 && item != 1) {
      mistake = fmt::format("{} is neither 0 ({}) nor 1 ({})", item, words.zero, words.one);
      return std::nullopt;
    }
    pattern.push_back(item == 1);
  }
  return pattern;
}

}  // namespace

std::optional<std::vector<bool>> read_layer_pattern(std::string_view text, std::int64_t layers,
                                                    std::string& mistake) {
  constexpr PatternWords kWords{.distance = "between layers with experts", .zero = "dense", .one = "experts"};
  return read_pattern(text, layers, kWords, mistake,
                      [](std::int64_t n, std::int64_t layer) { return layer % n == 0; });
}

std::optional<std::vector<bool>> read_window_pattern(std::string_view text, std::int64_t layers,
                                                     std::string& mistake) {
  constexpr PatternWords kWords{
      .distance = "between layers without the window", .zero = "all tokens", .one = "the window"};
  return read_pattern(text, layers, kWords, mistake,
                      [](std::int64_t n, std::int64_t layer) { return (layer + 1) % n != 0; });
}

std::optional<std::vector<LayoutStage>> read_pipeline_layout(std::string_view text, std::string& mistake) {
  mistake.clear();
  const std::string flat = LayoutReader(text, mistake).read();
  if (!mistake.empty()) return std::nullopt;
  std::vector<LayoutStage> stages(1);
  for (const char c : flat) {
    if (c == '|') stages.emplace_back();
    if (c == 'E') stages.back().embedding = true;
    if (c == 't') ++stages.back().layers;
    if (c == 'm') ++stages.back().mtp_layers;
    if (c == 'L') stages.back().loss = true;
  }
  const auto count = [&](auto member) {
    return std::ranges::count_if(stages, [&](const LayoutStage& s) { return s.*member; });
  };
  if (count(&LayoutStage::embedding) != 1 || !stages.front().embedding)
    mistake = "the embedding E belongs into the first stage, once";
  else if (count(&LayoutStage::loss) != 1 || !stages.back().loss)
    mistake = "the loss L belongs into the last stage, once";
  return mistake.empty() ? std::optional(std::move(stages)) : std::nullopt;
}

}  // namespace stagecraft
