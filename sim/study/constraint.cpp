#include "sim/study/constraint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "base/yaml.hpp"

namespace stagecraft {
namespace {

using Verb = Constraint::Verb;
using Term = Constraint::Term;

// Why a text is no expression, or an expression has no value here. Never leaves this file.
struct Nonsense {
  std::string why;
};

constexpr int kMaxNesting = 64;  // parentheses, nots and minus signs: a hostile text must not end the stack
constexpr std::size_t kMaxTerms = 1'000;

struct Token {
  enum class Kind { kEnd, kNumber, kText, kName, kSign };
  Kind kind = Kind::kEnd;
  std::string text = {};
};

bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : rest_(text) {}

  Token next() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == '\n'))
      rest_.remove_prefix(1);
    if (rest_.empty()) return {};
    const char c = rest_.front();
    if (c == '\'' || c == '"') return quoted(c);
    if (is_digit(c)) return number();
    if (is_name_start(c)) return {.kind = Token::Kind::kName, .text = take(name_length())};
    return sign();
  }

 private:
  std::string take(std::size_t length) {
    std::string text(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return text;
  }

  Token quoted(char quote) {
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) throw Nonsense{fmt::format("the quote {} is not closed", quote)};
    std::string text = take(end + 1);
    return {.kind = Token::Kind::kText, .text = text.substr(1, text.size() - 2)};
  }

  // What begins like a number and is none, such as 1f1b, is a name without quotes.
  Token number() {
    std::size_t length = 0;
    const auto at = [&](std::size_t i) { return i < rest_.size() ? rest_[i] : '\0'; };
    while (is_digit(at(length)) || is_name_start(at(length)) || at(length) == '.' ||
           ((at(length) == '-' || at(length) == '+') && (at(length - 1) == 'e' || at(length - 1) == 'E') &&
            is_digit(at(length + 1))))
      ++length;
    std::string text = take(length);
    if (!parse_number(text))
      throw Nonsense{
          fmt::format("{} is neither a number nor a name; text stands in quotes", in_quotes(text))};
    return {.kind = Token::Kind::kNumber, .text = std::move(text)};
  }

  [[nodiscard]] std::size_t name_length() const {
    std::size_t length = 1;
    while (length < rest_.size() &&
           (is_name_start(rest_[length]) || is_digit(rest_[length]) || rest_[length] == '.'))
      ++length;
    return length;
  }

  Token sign() {
    static constexpr std::array<std::string_view, 6> kTwo{"==", "!=", "<=", ">=", "&&", "||"};
    for (const std::string_view two : kTwo)
      if (rest_.starts_with(two)) return {.kind = Token::Kind::kSign, .text = take(2)};
    static constexpr std::string_view kOne = "+-*/%()[],<>!";
    if (kOne.find(rest_.front()) == std::string_view::npos) {
      if (rest_.front() == '=') throw Nonsense{"'=' stands alone; equality is written =="};
      throw Nonsense{fmt::format("{} has no meaning here", in_quotes(take(1)))};
    }
    return {.kind = Token::Kind::kSign, .text = take(1)};
  }

  std::string_view rest_;
};

struct Operator {
  std::string_view sign;
  Verb verb;
};

constexpr Operator kRelations[] = {{"==", Verb::kEqual},     {"!=", Verb::kUnequal},
                                   {"<=", Verb::kLessEqual}, {">=", Verb::kGreaterEqual},
                                   {"<", Verb::kLess},       {">", Verb::kGreater}};
constexpr Operator kSums[] = {{"+", Verb::kAdd}, {"-", Verb::kSubtract}};
constexpr Operator kProducts[] = {{"*", Verb::kMultiply}, {"/", Verb::kDivide}, {"%", Verb::kRemainder}};
constexpr Operator kFunctions[] = {{"min", Verb::kMin},
                                   {"max", Verb::kMax},
                                   {"abs", Verb::kAbs},
                                   {"floor", Verb::kFloor},
                                   {"ceil", Verb::kCeil}};

// Recursive descent: or, and, not, relation, sum, product, sign, atom.
class Parser {
 public:
  Parser(std::string_view text, std::vector<std::string>& names, std::vector<Term>& terms)
      : lexer_(text), names_(names), terms_(terms), token_(lexer_.next()) {}

  void parse() {
    if (token_.kind == Token::Kind::kEnd) throw Nonsense{"it is empty"};
    either();
    if (token_.kind != Token::Kind::kEnd)
      throw Nonsense{fmt::format("{} is not expected here", in_quotes(token_.text))};
  }

 private:
  class Depth {
   public:
    explicit Depth(int& depth) : depth_(depth) {
      if (++depth_ > kMaxNesting) throw Nonsense{"it is nested too deeply"};
    }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ~Depth() { --depth_; }

   private:
    int& depth_;
  };

  void advance() { token_ = lexer_.next(); }
  bool accept(std::string_view word) {
    const bool is =
        (token_.kind == Token::Kind::kSign || token_.kind == Token::Kind::kName) && token_.text == word;
    if (is) advance();
    return is;
  }
  void expect(std::string_view sign) {
    if (accept(sign)) return;
    throw Nonsense{token_.kind == Token::Kind::kEnd
                       ? fmt::format("'{}' is missing at the end", sign)
                       : fmt::format("'{}' is expected, not {}", sign, in_quotes(token_.text))};
  }
  std::size_t add(Term term) {
    if (terms_.size() >= kMaxTerms) throw Nonsense{"it is too long"};
    terms_.push_back(std::move(term));
    return terms_.size() - 1;
  }
  std::size_t add(Verb verb, std::vector<std::size_t> parts) {
    return add({.verb = verb, .literal = {}, .name = 0, .parts = std::move(parts)});
  }

  std::size_t either() {
    const Depth depth(depth_);
    std::size_t left = both();
    while (accept("or") || accept("||")) left = add(Verb::kOr, {left, both()});
    return left;
  }
  std::size_t both() {
    std::size_t left = negation();
    while (accept("and") || accept("&&")) left = add(Verb::kAnd, {left, negation()});
    return left;
  }
  std::size_t negation() {
    const Depth depth(depth_);
    if (accept("not") || accept("!")) return add(Verb::kNot, {negation()});
    return relation();
  }
  std::size_t relation() {
    const std::size_t left = sum();
    if (accept("in")) return membership(left);
    for (const Operator& candidate : kRelations) {
      if (!accept(candidate.sign)) continue;
      const std::size_t whole = add(candidate.verb, {left, sum()});
      for (const Operator& second : kRelations)
        if (token_.text == second.sign && token_.kind == Token::Kind::kSign)
          throw Nonsense{"relations do not chain; write a < b and b < c"};
      return whole;
    }
    return left;
  }
  std::size_t membership(std::size_t left) {
    std::vector<std::size_t> parts = {left};
    expect("[");
    do parts.push_back(sum());
    while (accept(","));
    expect("]");
    return add(Verb::kIn, std::move(parts));
  }
  std::size_t sum() {
    return chain(kSums, [&] { return product(); });
  }
  std::size_t product() {
    return chain(kProducts, [&] { return signed_atom(); });
  }

  template <class Part>
  std::size_t chain(std::span<const Operator> operators, Part part) {
    std::size_t left = part();
    for (bool more = true; more;) {
      more = false;
      for (const Operator& candidate : operators) {
        if (!accept(candidate.sign)) continue;
        left = add(candidate.verb, {left, part()});
        more = true;
        break;
      }
    }
    return left;
  }

  std::size_t signed_atom() {
    const Depth depth(depth_);
    if (accept("-")) return add(Verb::kNegate, {signed_atom()});
    return atom();
  }

  std::size_t atom() {
    const Token token = token_;
    switch (token.kind) {
      case Token::Kind::kEnd:
        throw Nonsense{"something is missing at the end"};
      case Token::Kind::kNumber:
        advance();
        return add({.verb = Verb::kLiteral, .literal = *parse_number(token.text), .name = 0, .parts = {}});
      case Token::Kind::kText:
        advance();
        return add({.verb = Verb::kLiteral, .literal = token.text, .name = 0, .parts = {}});
      case Token::Kind::kName:
        advance();
        return named(token.text);
      case Token::Kind::kSign:
        break;
    }
    if (!accept("(")) throw Nonsense{fmt::format("{} is not expected here", in_quotes(token.text))};
    const std::size_t inside = either();
    expect(")");
    return inside;
  }

  std::size_t named(const std::string& name) {
    if (name == "true" || name == "false")
      return add({.verb = Verb::kLiteral, .literal = name == "true", .name = 0, .parts = {}});
    for (const Operator& function : kFunctions)
      if (function.sign == name && accept("(")) return call(function);
    for (const std::string_view word : {"and", "or", "not", "in"})
      if (name == word) throw Nonsense{fmt::format("'{}' is not expected here", name)};
    const auto known = std::find(names_.begin(), names_.end(), name);
    const auto index = static_cast<std::size_t>(known - names_.begin());
    if (known == names_.end()) names_.push_back(name);
    return add({.verb = Verb::kName, .literal = {}, .name = index, .parts = {}});
  }

  std::size_t call(const Operator& function) {
    std::vector<std::size_t> parts;
    do parts.push_back(sum());
    while (accept(","));
    expect(")");
    const bool many = function.verb == Verb::kMin || function.verb == Verb::kMax;
    if (!many && parts.size() != 1) throw Nonsense{fmt::format("{} takes one number", function.sign)};
    return add(function.verb, std::move(parts));
  }

  Lexer lexer_;
  std::vector<std::string>& names_;
  std::vector<Term>& terms_;
  Token token_;
  int depth_ = 0;
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
    throw Nonsense{fmt::format("{} is {}, not true or false", spoken(index), kind_of(value))};
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
    throw Nonsense{fmt::format("{} is {}, not a number", spoken(index), kind_of(value))};
  }

  [[nodiscard]] bool related(Verb verb, std::size_t left, std::size_t right) const {
    const Fact a = evaluate(left), b = evaluate(right);
    for (const auto& [fact, index] : {std::pair(&a, left), std::pair(&b, right)})
      if (fact->index() == 0) throw Nonsense{fmt::format("{} has no single value", spoken(index))};
    if (a.index() != b.index())
      throw Nonsense{
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
    throw Nonsense{fmt::format("{} and {} have no order", spoken(left), spoken(right))};
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
    if (b == 0) throw Nonsense{"it divides by 0"};
    return verb == Verb::kDivide ? a / b : std::fmod(a, b);
  }

  [[nodiscard]] const Fact& known(std::size_t name) const {
    if (!std::holds_alternative<TakenAway>(facts_[name])) return facts_[name];
    throw Nonsense{
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
  Constraint constraint;
  constraint.text_ = text;
  constraint.where_ = where;
  try {
    Parser(text, constraint.names_, constraint.terms_).parse();
  } catch (const Nonsense& nonsense) {
    diagnostics.error({.code = "bad-expression",
                       .where = where,
                       .path = "where",
                       .message = fmt::format("{} is no expression: {}", in_quotes(text), nonsense.why),
                       .hint = "such as \"tensor * pipeline <= 64 and schedule != 'gpipe'\""});
    return std::nullopt;
  }
  return constraint;
}

Constraint::Verdict Constraint::holds(std::span<const Fact> facts) const {
  SC_CHECK(facts.size() == names_.size(), "a fact for each name");
  try {
    return {.holds = Evaluation(terms_, names_, facts).truth(terms_.size() - 1)};
  } catch (const Nonsense& nonsense) {
    return {.mistake = nonsense.why};
  }
}

}  // namespace stagecraft
