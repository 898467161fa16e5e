#include "formats/kineto_memory_work.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "formats/input_text.hpp"
#include "formats/kineto_arguments.hpp"

namespace stagecraft {
namespace {

// "Functor<float, 1, 2, 0>": the text of its arguments.
std::vector<std::string_view> functor_arguments(std::string_view kernel, std::string_view functor) {
  const std::size_t at = kernel.find(functor);
  const std::size_t open = at == std::string_view::npos ? at : kernel.find('<', at);
  const std::size_t close = open == std::string_view::npos ? open : kernel.find_first_of("<>", open + 1);
  std::vector<std::string_view> out;
  if (close == std::string_view::npos) return out;
  std::string_view rest = kernel.substr(open + 1, close - open - 1);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    out.push_back(trimmed(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return out;
}

std::optional<int> whole(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc() && end == text.data() + text.size();
  return all ? std::optional(value) : std::nullopt;
}

// Type and number of lists of a kernel over lists; 0 lists: its name does not tell.
struct ListTraffic {
  int lists = 0;
  std::string_view type;
};
ListTraffic list_traffic(const KnownOperator& known, std::string_view kernel) {
  if (known.traffic == OperatorTraffic::kList) {
    const std::vector<std::string_view> arguments = functor_arguments(kernel, "FusedAdamMathFunctor");
    return arguments.empty() ? ListTraffic{} : ListTraffic{known.operands, arguments.front()};
  }
  for (const std::string_view functor : {"BinaryOp", "UnaryOp", "PointwiseOp", "TernaryOp"}) {
    const std::vector<std::string_view> arguments = functor_arguments(kernel, functor);
    if (arguments.size() < 4) continue;
    const std::optional<int> read = whole(arguments[2]);
    if (read && *read > 0 && *read < 8) return {*read + 1, arguments.front()};
  }
  return {};
}

// "CatArrayBatchedCopy<…OpaqueType<2u>, …>": bytes of an element; 0: not told.
int opaque_size(std::string_view kernel) {
  const std::vector<std::string_view> arguments = functor_arguments(kernel, "OpaqueType");
  int size = 0;
  if (!arguments.empty())
    (void)std::from_chars(arguments.front().begin(), arguments.front().end(), size);  // "2u"
  return size >= 1 && size <= 16 ? size : 0;
}

std::string sample_word(const KnownOperator& known, std::string_view name) {
  if (!known.sample.empty()) return std::string(known.sample);
  const std::size_t colons = name.find("::");
  std::string word(colons == std::string_view::npos ? name : name.substr(colons + 2));
  while (word.ends_with('_')) word.pop_back();
  while (word.starts_with('_')) word.erase(0, 1);
  return word;
}

// Named extents of the main tensor; empty where it has not the form.
std::map<std::string, std::int64_t> sample_extents(SampleShape shape, const Extents& dims) {
  const std::int64_t all = elements_of(dims), last = dims.empty() ? 0 : dims.back();
  if (all == 0) return {};
  switch (shape) {
    case SampleShape::kFlat:
      break;
    case SampleShape::kRows:
      return {{"tokens", all / last}, {"hidden", last}};
    case SampleShape::kVocabulary:
      return {{"tokens", all / last}, {"vocabulary", last}};
    case SampleShape::kScores:
      if (dims.size() < 3 || dims[dims.size() - 2] != last) return {};
      return {{"heads", all / last / last}, {"sequence", last}};
    case SampleShape::kHeads:
      if (dims.size() < 3) return {};
      return {{"tokens", all / last / dims[dims.size() - 2]},
              {"heads", dims[dims.size() - 2]},
              {"head_size", last}};
  }
  return {{"elements", all}};
}

constexpr const char* kNoShapes = "memory-bound kernels without shapes";
constexpr const char* kNotCounted = "memory-bound kernels of operators whose traffic is not counted";
constexpr const char* kNoType = "memory-bound kernels whose types are not recorded";

// A softmax may write another type than it reads, which only its kernel tells.
bool widens(std::string_view kernel) {
  return contains_any(kernel, {"BFloat16, float, float", "Half, float, float"});
}

MemoryWorkOrReason operands_work(const KnownOperator& known, const KinetoInputs& inputs,
                                 std::string_view kernel) {
  const TensorArgument main = tensor_argument(inputs, known.main);
  Extents dims = main.dims == nullptr ? Extents{} : *main.dims;
  const std::int64_t elements = main_elements(known, inputs);
  if (elements == 0) return kNoShapes;
  if (known.traffic == OperatorTraffic::kLookup) dims = {elements / dims.back(), dims.back()};
  const int size = type_size(main.type);
  if (size == 0) return kNoType;
  if (widens(kernel)) return "memory-bound kernels that write another type than they read";
  KinetoMemoryWork work{.op = std::string(known.sample),
                        .shape = sample_extents(known.shape, dims),
                        .dtype = dtype_word(main.type)};
  if (work.shape.empty())
    return "memory-bound kernels of other extents (softmax of unequal queries and keys)";
  work.bytes = static_cast<double>(elements) * (known.operands * size + known.masks) +
               static_cast<double>(elements / dims.back()) * known.per_row;
  return work;
}

MemoryWorkOrReason move_work(const KinetoInputs& inputs) {
  const TensorArgument to = tensor_argument(inputs, 0), from = tensor_argument(inputs, 1);
  const std::int64_t elements = to.elements();
  if (elements == 0 || from.elements() == 0) return kNoShapes;
  const int written = type_size(to.type), read = type_size(from.type);
  if (written == 0 || read == 0) return kNoType;
  const bool same = to.type == from.type;
  return KinetoMemoryWork{
      .op = same ? "copy" : "cast",
      .shape = {{"elements", elements}},
      .dtype = same ? dtype_word(to.type) : dtype_word(from.type) + " to " + dtype_word(to.type),
      .bytes = static_cast<double>(elements) * written + static_cast<double>(from.elements()) * read};
}

MemoryWorkOrReason broadcast_work(const KnownOperator& known, const KinetoOp& op) {
  const std::optional<Broadcast> all = broadcast_of(op.inputs);
  if (!all) return op.inputs.dims.empty() ? kNoShapes : kNoType;
  return KinetoMemoryWork{.op = sample_word(known, op.name),
                          .shape = {{"elements", all->elements}},
                          .dtype = dtype_word(all->type),
                          .bytes = all->bytes};
}

MemoryWorkOrReason list_work(const KnownOperator& known, const KinetoOp& op, std::string_view kernel) {
  const std::int64_t elements = main_elements(known, op.inputs);
  if (elements == 0)
    return "kernels over lists of tensors without shapes (PyTorch records 30 tensors at most)";
  KinetoMemoryWork work{.op = sample_word(known, op.name), .shape = {{"elements", elements}}, .dtype = {}};
  if (known.traffic == OperatorTraffic::kJoin) {
    const int size = opaque_size(kernel);
    if (size == 0) return kNoType;
    work.dtype = std::to_string(size) + " bytes";
    work.bytes = 2.0 * size * static_cast<double>(elements);
    return work;
  }
  const ListTraffic traffic = list_traffic(known, kernel);
  const int size = type_size(traffic.type);
  if (traffic.lists == 0 || size == 0) return kNoType;
  work.dtype = dtype_word(traffic.type);
  work.bytes = static_cast<double>(traffic.lists) * size * static_cast<double>(elements);
  return work;
}

}  // namespace

std::int64_t main_elements(const KnownOperator& known, const KinetoInputs& inputs) {
  switch (known.traffic) {
    case OperatorTraffic::kLookup: {
      const TensorArgument table = tensor_argument(inputs, known.main),
                           rows = tensor_argument(inputs, known.indices);
      if (table.dims == nullptr || table.dims->size() != 2) return 0;
      return elements_of({rows.elements(), table.dims->back()});
    }
    case OperatorTraffic::kBroadcast: {
      const std::optional<Broadcast> all = broadcast_of(inputs);
      return all ? all->elements : 0;
    }
    case OperatorTraffic::kList:
    case OperatorTraffic::kForeach:
    case OperatorTraffic::kJoin:
      return known.main < inputs.list_elements.size() ? inputs.list_elements[known.main] : 0;
    case OperatorTraffic::kNotCounted:
    case OperatorTraffic::kOperands:
    case OperatorTraffic::kMove:
      break;
  }
  return tensor_argument(inputs, known.main).elements();
}

MemoryWorkOrReason memory_work_of(const KinetoTrace& trace, const KinetoKernel& kernel) {
  const KinetoOp* op = trace.op_of(kernel);
  if (op == nullptr) return "memory-bound kernels that no operator is tied to";
  const KnownOperator* known = known_operator(op->name);
  if (known == nullptr) return kNotCounted;
  const std::string& name = trace.name_of(kernel);
  switch (known->traffic) {
    case OperatorTraffic::kOperands:
    case OperatorTraffic::kLookup:
      return operands_work(*known, op->inputs, name);
    case OperatorTraffic::kMove:
      return move_work(op->inputs);
    case OperatorTraffic::kList:
    case OperatorTraffic::kForeach:
    case OperatorTraffic::kJoin:
      return list_work(*known, *op, name);
    case OperatorTraffic::kBroadcast:
      return broadcast_work(*known, *op);
    case OperatorTraffic::kNotCounted:
      break;
  }
  return kNotCounted;
}

}  // namespace stagecraft
