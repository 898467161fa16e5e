// `where: "tensor * pipeline <= 64"`: which points of a sweep are wanted. An expression over names, and
// nothing else: it reads no file, calls nothing of the user's, and always ends.
//
//   numbers     4, 0.5, 1e3; + - * / % and parentheses; min(a, b, …), max(a, b, …), abs(a), floor(a), ceil(a)
//   text        'zb-h1' or "zb-h1"; texts that are quantities of one kind ('2 GiB', '512 MiB') compare by
//               size
//   relations   == != < <= > >=, in [a, b, …]
//   logic       and or not (also && || !), true, false
//   names       letters, digits, _ and dots: tensor, parallelism.tensor
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.hpp"

namespace stagecraft {

// A point removes the key with `null`; its default is known once the point is loaded.
struct TakenAway {
  friend bool operator==(TakenAway, TakenAway) = default;
};

// Value of a name at a point; monostate for a list, a mapping or nothing.
using Fact = std::variant<std::monostate, bool, double, std::string, TakenAway>;

class Constraint {
 public:
  // nullopt and an error at `where` when the text is no expression.
  [[nodiscard]] static std::optional<Constraint> parse(const std::string& text, const SourceLocation& where,
                                                       Diagnostics& diagnostics);

  struct Verdict {
    bool holds = false;
    // empty, or the reason why it has no value: "'schedule' is a text, not a number".
    std::string mistake = {};
  };
  // `facts` in the order of names().
  [[nodiscard]] Verdict holds(std::span<const Fact> facts) const;

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }  // each once
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const SourceLocation& where() const { return where_; }

  enum class Verb : std::uint8_t {
    kLiteral,
    kName,
    kOr,
    kAnd,
    kNot,
    kEqual,
    kUnequal,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kIn,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kRemainder,
    kNegate,
    kMin,
    kMax,
    kAbs,
    kFloor,
    kCeil
  };
  struct Term {
    Verb verb = Verb::kLiteral;
    Fact literal = {};
    std::size_t name = 0;            // index into names()
    std::vector<std::size_t> parts;  // indices of terms
  };

 private:
  std::string text_;
  SourceLocation where_;
  std::vector<std::string> names_;
  std::vector<Term> terms_;  // parts before the whole: the last is the expression
};

}  // namespace stagecraft
