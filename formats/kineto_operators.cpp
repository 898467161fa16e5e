#include "formats/kineto_operators.hpp"

#include <optional>
#include <string>
#include <variant>

#include "formats/input_text.hpp"
#include "formats/kineto_arguments.hpp"
#include "formats/kineto_attention.hpp"
#include "formats/kineto_kernels.hpp"
#include "formats/kineto_memory_work.hpp"

namespace stagecraft {
namespace {

// Names of kernels that extensions launch without an operator of their own.
OperatorWork work_of_name(const std::string& name) {
  const bool backward = contains_any(name, {"bwd", "backward"});
  if (names_attention(name)) return {OperatorRole::kAttention, backward};
  if (contains_any(name, {"layer_norm", "layernorm", "rms_norm", "rmsnorm", "ln_fwd", "ln_bwd",
                          "cuapplylayer", "cuapplyrms", "cucomputegrad", "cucomputepartgrad"}))
    return {OperatorRole::kNorm, backward || name.find("cucompute") != std::string::npos};
  if (names_loss(name)) return {OperatorRole::kLoss, backward};
  if (contains_any(name, {"softmax"})) return {OperatorRole::kSoftmax, backward};
  if (contains_any(name, {"fused_rope", "rotary"})) return {OperatorRole::kRope, backward};
  if (contains_any(name, {"gelu", "silu", "swiglu", "gated_act"}))
    return {OperatorRole::kActivation,
            backward || contains_any(name, {"dgelu", "dsilu", "dswiglu", "dgated"})};
  if (names_optimizer(name)) return {OperatorRole::kOptimizer, false};
  if (contains_any(name, {"dropout"})) return {OperatorRole::kDropout, backward};
  if (contains_any(name, {"embedding"})) return {OperatorRole::kEmbedding, backward};
  return {};
}

}  // namespace

OperatorWork operator_work(const KinetoTrace& trace, const KinetoKernel& kernel) {
  const KinetoOp* op = trace.op_of(kernel);
  if (op != nullptr) {
    if (const std::optional<bool> backward = attention_is_backward(op->name)) {
      OperatorWork work{.role = OperatorRole::kAttention, .backward = *backward};
      const AttentionOrReason shape = attention_of(trace, kernel);
      if (const auto* a = std::get_if<KinetoAttention>(&shape))
        work.elements = elements_of({a->batch, a->heads, a->queries, a->keys});
      return work;
    }
    if (const KnownOperator* known = known_operator(op->name)) {
      return {.role = kernel.of_optimizer ? OperatorRole::kOptimizer : known->role,
              .backward = is_of_either_pass(known->role) ? kernel.of_backward : known->backward,
              .elements = main_elements(*known, op->inputs)};
    }
  }
  if (kernel.of_optimizer) return {.role = OperatorRole::kOptimizer};
  return kernel.work == DeviceWork::kKernel ? work_of_name(lower_case(trace.name_of(kernel)))
                                            : OperatorWork{};
}

}  // namespace stagecraft
