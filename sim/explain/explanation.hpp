// A figure as a tree: value, formula, the figures in it, and the sources of those without a formula.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/json.hpp"
#include "sim/explain/amount.hpp"

namespace stagecraft {

// Formula of the value. A difference subtracts all other inputs from the first; a quotient divides the first
// by all others.
enum class Operation : std::uint8_t { kNone, kSum, kDifference, kProduct, kQuotient, kMaximum };

enum class OriginKind : std::uint8_t {
  kFormula,     // the inputs
  kScenario,    // a key that was written
  kDefault,     // a key that was not
  kCluster,     // of the node or the fabric
  kProfile,     // of the hardware profile
  kModel,       // counted from the model
  kSimulation,  // read off the simulated timeline
  kLedger,      // of the memory ledger
  kPrice,       // priced from models of collectives and kernels, in one piece
  kConstant,
};
[[nodiscard]] std::string_view name(OriginKind kind);

struct Origin {
  OriginKind kind = OriginKind::kFormula;
  std::string text = {};      // "published: NVIDIA A100 data sheet"
  SourceLocation where = {};  // of a key
};

struct Explanation {
  std::string name;  // the path of a figure or of a key; else words
  Amount value;
  Operation operation = Operation::kNone;
  std::vector<Explanation> inputs = {};
  Origin origin = {};
};

[[nodiscard]] Explanation leaf(std::string name, Amount value, Origin origin);
// The value is that of the formula.
[[nodiscard]] Explanation formula(std::string name, Operation operation, std::vector<Explanation> inputs);

// Applies the operation to the values of the inputs. requires an operation and an input.
[[nodiscard]] Amount evaluate(const Explanation& explanation);

// "tokens / iteration_time_s"; empty without an operation.
[[nodiscard]] std::string formula_text(const Explanation& explanation);

// The explanation as a tree of `depth` levels below the top; deeper levels are counted.
[[nodiscard]] std::string render_text(const Explanation& explanation, int depth);
void write(JsonWriter& json, const Explanation& explanation, int depth);

}  // namespace stagecraft
