#include "sim/explain/explanation.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "base/wrapped_text.hpp"

namespace stagecraft {
namespace {

constexpr std::array<std::string_view, 10> kOriginNames = {"formula", "scenario", "default",    "cluster",
                                                           "profile", "model",    "simulation", "ledger",
                                                           "price",   "constant"};
constexpr std::size_t kMostInFormula = 6;  // names; a longer one is said in words

std::string_view sign_of(Operation operation) {
  switch (operation) {
    case Operation::kSum:
      return " + ";
    case Operation::kDifference:
      return " - ";
    case Operation::kProduct:
      return " * ";
    case Operation::kQuotient:
      return " / ";
    case Operation::kMaximum:
      return ", ";
    case Operation::kNone:
      break;
  }
  return "";
}

Amount combine(Operation operation, const Amount& a, const Amount& b) {
  switch (operation) {
    case Operation::kSum:
      return a + b;
    case Operation::kDifference:
      return a - b;
    case Operation::kProduct:
      return a * b;
    case Operation::kQuotient:
      return a / b;
    case Operation::kMaximum:
      return larger(a, b);
    case Operation::kNone:
      break;
  }
  SC_CHECK(false, "a leaf has no formula");
  return a;
}

std::string origin_text(const Origin& origin) {
  std::string text(name(origin.kind));
  if (!origin.where.file.empty()) {
    text += " " + origin.where.file;
    if (origin.where.line > 0) text += fmt::format(":{}", origin.where.line);
  }
  return origin.text.empty() ? text : text + ": " + origin.text;
}

// Inside "memory.stages.0.peak_bytes", "memory.stages.0.weights_bytes" is "weights_bytes".
std::string short_name(const std::string& name, const std::string& of) {
  const std::size_t dot = of.rfind('.');
  if (dot == std::string::npos || of.find(' ') != std::string::npos) return name;
  const std::string before = of.substr(0, dot + 1);
  return name.starts_with(before) ? name.substr(before.size()) : name;
}

std::string short_formula(const Explanation& node) {
  Explanation named{.name = node.name, .value = node.value, .operation = node.operation};
  for (const Explanation& input : node.inputs)
    named.inputs.push_back(leaf(short_name(input.name, node.name), input.value, {}));
  return formula_text(named);
}

constexpr std::string_view kBetween = "   ";  // a value and its formula

void add_lines(const Explanation& node, int level, int depth, std::string& out) {
  const std::string indent(static_cast<std::size_t>(level) * 2, ' ');
  const std::string formula = short_formula(node);
  const std::string head = fmt::format("{}{} = {}", indent, node.name, human(node.value));
  const std::string why = formula.empty() ? "[" + origin_text(node.origin) + "]" : "= " + formula;
  const bool on_one_line = utf8_count(head) + kBetween.size() + utf8_count(why) <= kTerminalWidth;
  out += on_one_line
             ? head + std::string(kBetween) + why + "\n"
             : wrapped_text("", indent + "    ", head) + wrapped_text(indent + "    ", indent + "    ", why);
  if (!formula.empty() && !node.origin.text.empty())
    out += wrapped_text(indent + "  ", indent + "   ", "(" + node.origin.text + ")");
  if (level >= depth) {
    if (!node.inputs.empty())
      out += fmt::format("{}  … {} below: --depth {}\n", indent, node.inputs.size(), depth + 1);
    return;
  }
  for (const Explanation& input : node.inputs) add_lines(input, level + 1, depth, out);
}

}  // namespace

std::string_view name(OriginKind kind) {
  return kOriginNames[static_cast<std::size_t>(kind)];
}

Explanation leaf(std::string name, Amount value, Origin origin) {
  return {.name = std::move(name), .value = value, .origin = std::move(origin)};
}

Explanation formula(std::string name, Operation operation, std::vector<Explanation> inputs) {
  Explanation node{.name = std::move(name), .value = {}, .operation = operation, .inputs = std::move(inputs)};
  node.value = evaluate(node);
  return node;
}

Amount evaluate(const Explanation& explanation) {
  SC_CHECK(!explanation.inputs.empty(), "a formula has inputs");
  Amount value = explanation.inputs.front().value;
  for (std::size_t i = 1; i < explanation.inputs.size(); ++i)
    value = combine(explanation.operation, value, explanation.inputs[i].value);
  return value;
}

std::string formula_text(const Explanation& explanation) {
  if (explanation.operation == Operation::kNone) return "";
  std::vector<std::string> names;
  for (const Explanation& input : explanation.inputs) names.push_back(input.name);
  const bool maximum = explanation.operation == Operation::kMaximum;
  if (names.size() > kMostInFormula && (maximum || explanation.operation == Operation::kSum))
    return fmt::format("{} of {}", maximum ? "the largest" : "the sum", names.size());
  const std::string text = join(names, sign_of(explanation.operation));
  return maximum ? "max(" + text + ")" : text;
}

std::string render_text(const Explanation& explanation, int depth) {
  std::string out;
  add_lines(explanation, 0, depth, out);
  return out;
}

void write(JsonWriter& json, const Explanation& explanation, int depth) {
  json.field("name", explanation.name).key("value");
  write(json, explanation.value);
  json.field("unit", name(explanation.value.unit()));
  json.key("formula");
  const std::string text = formula_text(explanation);
  text.empty() ? json.null() : json.value(text);
  json.key("source").begin_object().field("kind", name(explanation.origin.kind));
  if (!explanation.origin.text.empty()) json.field("text", explanation.origin.text);
  if (!explanation.origin.where.file.empty()) {
    json.field("file", explanation.origin.where.file);
    json.field("line", explanation.origin.where.line);
  }
  json.end_object();
  json.field("input_count", explanation.inputs.size()).key("inputs").begin_array();
  if (depth > 0) {
    for (const Explanation& input : explanation.inputs) {
      json.begin_object();
      write(json, input, depth - 1);
      json.end_object();
    }
  }
  json.end_array();
}

}  // namespace stagecraft
