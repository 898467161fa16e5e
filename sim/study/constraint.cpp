#include "sim/study/constraint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "base/yaml.hpp"
#include "sim/study/constraint_parser.hpp"

namespace stagecraft {
namespace {

using Verb = Constraint::Verb;
using Term = Constraint::Term;

// Why an expression has no value here. Never leaves this file.
struct NoValue {
  std::string why;
};

std::string_view kind_of(const Fact& fact) {
  static constexpr std::string_view kKinds[] = {"no single value", "true or false", "a number", "a text"};
  return kKinds[fact.index()];
}

// Texts that are quantities of one kind, in its base unit.
std::optional<std::pair<double, double>> as_quantities(const std::string& a, const std::string& b) {
  if (const auto x = parse_duration(a), y = parse_duration(b); x && y)
    return std::pair(static_cast<double>(x->count()), static_cast<double>(y->count()));
  if (const auto x = parse_bytes(a), y = parse_bytes(b); x && y)
    return std::pair(static_cast<double>(x->count()), static_cast<double>(y->count()));
  if (const auto x = parse_bandwidth(a), y = parse_bandwidth(b); x && y)
    return std::pair(x->count(), y->count());
  return std::nullopt;
}

bool compare(Verb verb, double a, double b) {
  switch (verb) {
    case Verb::kEqual:
      return a == b;
    case Verb::kUnequal:
      return a != b;
    case Verb::kLess:
      return a < b;
    case Verb::kLessEqual:
      return a <= b;
    case Verb::kGreater:
      return a > b;
    default:
      return a >= b;
  }
}

class Evaluation {
 public:
  Evaluation(std::span<const Term> terms, std::span<const std::string> names, std::span<const Fact> facts)
      : terms_(terms), names_(names), facts_(facts) {}

  [[nodiscard]] bool truth(std::size_t index) const {
    const Fact value = evaluate(index);
    if (const bool* flag = std::get_if<bool>(&value)) return *flag;
    throw NoValue{fmt::format("{} is {}, not true or false", spoken(index), kind_of(value))};
  }

 private:
  // What a message calls a term.
  [[nodiscard]] std::string spoken(std::size_t index) const {
    const Term& term = terms_[index];
    if (term.verb == Verb::kName) return in_quotes(names_[term.name]);
    if (const auto* text = std::get_if<std::string>(&term.literal)) return in_quotes(*text);
    return term.verb == Verb::kLiteral ? "a literal" : "an expression";
  }

  [[nodiscard]] double number(std::size_t index) const {
    const Fact value = evaluate(index);
    if (const double* figure = std::get_if<double>(&value)) return *figure;
    throw NoValue{fmt::format("{} is {}, not a number", spoken(index), kind_of(value))};
  }

  [[nodiscard]] bool related(Verb verb, std::size_t left, std::size_t right) const {
    const Fact a = evaluate(left), b = evaluate(right);
    for (const auto& [fact, index] : {std::pair(&a, left), std::pair(&b, right)})
      if (fact->index() == 0) throw NoValue{fmt::format("{} has no single value", spoken(index))};
    if (a.index() != b.index())
      throw NoValue{
          fmt::format("{} is {} and {} is {}", spoken(left), kind_of(a), spoken(right), kind_of(b))};
    if (const double* x = std::get_if<double>(&a)) return compare(verb, *x, std::get<double>(b));
    const bool equality = verb == Verb::kEqual || verb == Verb::kUnequal;
    if (const auto* x = std::get_if<std::string>(&a)) {
      const std::string& y = std::get<std::string>(b);
      if (const auto sizes = as_quantities(*x, y)) return compare(verb, sizes->first, sizes->second);
      if (equality) return (*x == y) == (verb == Verb::kEqual);
    } else if (equality) {
      return (a == b) == (verb == Verb::kEqual);
    }
    throw NoValue{fmt::format("{} and {} have no order", spoken(left), spoken(right))};
  }

  [[nodiscard]] double arithmetic(const Term& term) const {
    double result = number(term.parts[0]);
    if (term.parts.size() == 1) return unary(term.verb, result);
    for (std::size_t i = 1; i < term.parts.size(); ++i)
      result = binary(term.verb, result, number(term.parts[i]));
    return result;
  }

  static double unary(Verb verb, double a) {
    switch (verb) {
      case Verb::kNegate:
        return -a;
      case Verb::kAbs:
        return std::abs(a);
      case Verb::kFloor:
        return std::floor(a);
      case Verb::kCeil:
        return std::ceil(a);
      default:
        return a;  // the least and the largest of one
    }
  }

  static double binary(Verb verb, double a, double b) {
    switch (verb) {
      case Verb::kAdd:
        return a + b;
      case Verb::kSubtract:
        return a - b;
      case Verb::kMultiply:
        return a * b;
      case Verb::kMin:
        return std::min(a, b);
      case Verb::kMax:
        return std::max(a, b);
      default:
        break;
    }
    if (b == 0) throw NoValue{"it divides by 0"};
    return verb == Verb::kDivide ? a / b : std::fmod(a, b);
  }

  [[nodiscard]] const Fact& known(std::size_t name) const {
    if (!std::holds_alternative<TakenAway>(facts_[name])) return facts_[name];
    throw NoValue{
        fmt::format("the point takes {} away, and its default is not known before the point is loaded",
                    in_quotes(names_[name]))};
  }

  [[nodiscard]] Fact evaluate(std::size_t index) const {
    const Term& term = terms_[index];
    switch (term.verb) {
      case Verb::kLiteral:
        return term.literal;
      case Verb::kName:
        return known(term.name);
      case Verb::kOr:
        return truth(term.parts[0]) || truth(term.parts[1]);
      case Verb::kAnd:
        return truth(term.parts[0]) && truth(term.parts[1]);
      case Verb::kNot:
        return !truth(term.parts[0]);
      case Verb::kIn:
        return std::any_of(term.parts.begin() + 1, term.parts.end(),
                           [&](std::size_t part) { return related(Verb::kEqual, term.parts[0], part); });
      case Verb::kEqual:
      case Verb::kUnequal:
      case Verb::kLess:
      case Verb::kLessEqual:
      case Verb::kGreater:
      case Verb::kGreaterEqual:
        return related(term.verb, term.parts[0], term.parts[1]);
      default:
        return arithmetic(term);
    }
  }

  std::span<const Term> terms_;
  std::span<const std::string> names_;
  std::span<const Fact> facts_;
};

}  // namespace

std::optional<Constraint> Constraint::parse(const std::string& text, const SourceLocation& where,
                                            Diagnostics& diagnostics) {
  ConstraintTerms parsed = parse_constraint(text);
  if (!parsed.mistake.empty()) {
    diagnostics.error({.code = "bad-expression",
                       .where = where,
                       .path = "where",
                       .message = fmt::format("{} is no expression: {}", in_quotes(text), parsed.mistake),
                       .hint = "such as \"tensor * pipeline <= 64 and schedule != 'gpipe'\""});
    return std::nullopt;
  }
  Constraint constraint;
  constraint.text_ = text;
  constraint.where_ = where;
  constraint.names_ = std::move(parsed.names);
  constraint.terms_ = std::move(parsed.terms);
  return constraint;
}

Constraint::Verdict Constraint::holds(std::span<const Fact> facts) const {
  SC_CHECK(facts.size() == names_.size(), "a fact for each name");
  try {
    return {.holds = Evaluation(terms_, names_, facts).truth(terms_.size() - 1)};
  } catch (const NoValue& nothing) {
    return {.mistake = nothing.why};
  }
}

}  // namespace stagecraft
