#include "sim/study/constraint_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "base/yaml.hpp"

namespace stagecraft {
namespace {

using Verb = Constraint::Verb;
using Term = Constraint::Term;

// Why a text is no expression. Never leaves this file.
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
    const auto known = std::ranges::find(names_, name);
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

}  // namespace

ConstraintTerms parse_constraint(std::string_view text) {
  ConstraintTerms parsed;
  try {
    Parser(text, parsed.names, parsed.terms).parse();
  } catch (const Nonsense& nonsense) {
    parsed.mistake = nonsense.why;
  }
  return parsed;
}

}  // namespace stagecraft
