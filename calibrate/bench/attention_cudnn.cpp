#if __has_include(<cudnn.h>) && !defined(STAGECRAFT_NO_CUDNN)

#include "calibrate/bench/attention_cudnn.hpp"

#include <cudnn.h>

#include <array>
#include <cfloat>
#include <cmath>
#include <list>
#include <utility>

namespace stagecraft {

float attention_scale(const AttentionPoint& shape) {
  return 1.0F / std::sqrt(static_cast<float>(shape.head_size));
}

namespace {

constexpr int kOldestCudnn = 90600;  // before it the caller had to clear the accumulator of dQ

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> detail{};
  cudnnGetLastErrorString(detail.data(), detail.size());
  throw Unmeasurable(std::string("cuDNN ") + std::to_string(cudnnGetVersion()) + ", " + what + ": " +
                     cudnnGetErrorString(status) + (detail[0] != 0 ? std::string(": ") + detail.data() : ""));
}

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &descriptor_), "create descriptor");
  }
  ~Descriptor() {
    if (descriptor_ != nullptr) (void)cudnnBackendDestroyDescriptor(descriptor_);
  }
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  [[nodiscard]] cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    check(cudnnBackendSetAttribute(descriptor_, name, type, 1, &value), "set attribute");
  }
  template <class T>
  void set_all(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& values) {
    check(cudnnBackendSetAttribute(descriptor_, name, type, static_cast<std::int64_t>(values.size()),
                                   values.data()),
          "set attributes");
  }
  void set(cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t other) {
    set<cudnnBackendDescriptor_t>(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other);
  }
  void finalize(const char* what) { check(cudnnBackendFinalize(descriptor_), what); }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

using Extents = std::array<std::int64_t, 4>;  // batch, heads, rows, columns
using Tensor = cudnnBackendDescriptor_t;      // owned by the graph

Extents packed(const Extents& dims) {
  return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
}
Extents swapped(Extents extents) {
  std::swap(extents[2], extents[3]);
  return extents;
}

// The graph as it grows: tensors, operations, and what a run binds them to.
class Graph {
 public:
  // In memory, at `data`.
  Tensor real(cudnnDataType_t type, const Extents& dims, const Extents& strides, void* data) {
    return add(type, dims, strides, {.data = data});
  }
  // In memory as well, in an order of the engine's own.
  Tensor accumulator(const Extents& dims, float* data) {
    return add(CUDNN_DATA_FLOAT, dims, packed(dims),
               {.data = data, .reordering = CUDNN_TENSOR_REORDERING_F16x16});
  }
  Tensor between(const Extents& dims, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return between(dims, packed(dims), type);
  }
  Tensor between(const Extents& dims, const Extents& strides, cudnnDataType_t type) {
    return add(type, dims, strides, {.is_virtual = true});
  }
  // A number handed over by value at every run; its place must not move, hence the list.
  Tensor number(float value) {
    numbers_.push_back(value);
    return add(CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, {.data = &numbers_.back(), .by_value = true});
  }

  struct Step {
    cudnnPointwiseMode_t mode;
    Tensor x, y, b = nullptr, t = nullptr;
    std::int64_t axis = -1;
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
  };
  Tensor pointwise(const Step& step) {
    Descriptor what(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    what.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, step.mode);
    what.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, step.precision);
    if (step.axis >= 0) what.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, step.axis);
    what.finalize("pointwise");
    Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what.get());
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, step.x);
    if (step.b != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, step.b);
    if (step.t != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, step.t);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, step.y);
    keep(std::move(operation), "pointwise operation");
    parts_.push_back(std::move(what));
    return step.y;
  }
  Tensor matmul(Tensor a, Tensor b, Tensor c) {
    Descriptor what(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    what.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    what.finalize("matmul");
    Descriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, what.get());
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    keep(std::move(operation), "matmul operation");
    parts_.push_back(std::move(what));
    return c;
  }
  Tensor reduce(cudnnReduceTensorOp_t op, Tensor x, Tensor y) {
    Descriptor what(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    what.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op);
    what.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    what.finalize("reduction");
    Descriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, what.get());
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    keep(std::move(operation), "reduction operation");
    parts_.push_back(std::move(what));
    return y;
  }
  Tensor reshape(Tensor x, Tensor y) {
    Descriptor operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    keep(std::move(operation), "reshape operation");
    return y;
  }

  // The first plan that cuDNN's heuristics propose and this device supports.
  [[nodiscard]] Descriptor plan(cudnnHandle_t handle) const {
    std::vector<cudnnBackendDescriptor_t> operations;
    for (const Descriptor& operation : operations_) operations.push_back(operation.get());
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
    graph.set_all(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations);
    graph.finalize("operation graph");
    std::string why = "no engine was proposed";
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
      for (const Descriptor& config : proposals(graph, mode, why)) {
        try {
          Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
          plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
          plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config.get());
          plan.finalize("execution plan");
          return plan;
        } catch (const Unmeasurable& refused) {
          why = refused.what();  // the next proposal may do
        }
      }
    throw Unmeasurable("attention: no plan: " + why);
  }

  [[nodiscard]] Descriptor bindings(void* workspace) const {
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set_all(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids_);
    pack.set_all(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers_);
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
    pack.finalize("variant pack");
    return pack;
  }

 private:
  struct Place {
    void* data = nullptr;
    bool is_virtual = false, by_value = false;
    cudnnBackendTensorReordering_t reordering = CUDNN_TENSOR_REORDERING_NONE;
  };

  Tensor add(cudnnDataType_t type, const Extents& dims, const Extents& strides, const Place& place) {
    const std::int64_t id = next_id_++, alignment = place.by_value ? 4 : 16;
    Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
    tensor.set_all(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims);
    tensor.set_all(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
    tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
    tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment);
    tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, place.is_virtual);
    tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, place.by_value);
    if (place.reordering != CUDNN_TENSOR_REORDERING_NONE)
      tensor.set(CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TYPE_TENSOR_REORDERING_MODE, place.reordering);
    tensor.finalize("tensor");
    if (!place.is_virtual) {
      ids_.push_back(id);
      pointers_.push_back(place.data);
    }
    parts_.push_back(std::move(tensor));
    return parts_.back().get();
  }

  void keep(Descriptor operation, const char* what) {
    operation.finalize(what);
    operations_.push_back(std::move(operation));
  }

  [[nodiscard]] static std::vector<Descriptor> proposals(const Descriptor& graph, cudnnBackendHeurMode_t mode,
                                                         std::string& why) {
    std::vector<Descriptor> configs;
    try {
      Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
      heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.get());
      heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
      heuristics.finalize("heuristics");
      std::int64_t count = 0;
      check(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
            "count of engine configurations");
      std::vector<cudnnBackendDescriptor_t> raw;
      for (std::int64_t i = 0; i < count; ++i) {
        configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        raw.push_back(configs.back().get());
      }
      if (count > 0)
        check(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
              "engine configurations");
      // Configurations that do not serve are counted, not given.
      configs.erase(configs.begin() + count, configs.end());
    } catch (const Unmeasurable& refused) {
      why = refused.what();
      configs.clear();
    }
    return configs;
  }

  std::vector<Descriptor> parts_, operations_;
  std::vector<std::int64_t> ids_;
  std::vector<void*> pointers_;
  std::list<float> numbers_;
  std::int64_t next_id_ = 1;
};

// The tensors that both passes know.
struct Frame {
  AttentionPoint shape;
  AttentionOperands at;

  [[nodiscard]] Extents queries(std::int64_t columns) const {
    return {shape.batch, shape.heads, shape.sequence, columns};
  }
  [[nodiscard]] Extents keys() const {
    return {shape.batch, shape.kv_heads, shape.sequence, shape.head_size};
  }
  [[nodiscard]] Extents scores() const { return queries(shape.sequence); }
  // Strides of [batch, sequence, heads, size] seen as [batch, heads, sequence, size].
  [[nodiscard]] Extents strides(std::int64_t heads) const {
    return {shape.sequence * heads * shape.head_size, shape.head_size, heads * shape.head_size, 1};
  }
  [[nodiscard]] Tensor query_like(Graph& graph, void* data) const {
    return graph.real(CUDNN_DATA_BFLOAT16, queries(shape.head_size), strides(shape.heads), data);
  }
  [[nodiscard]] Tensor key_like(Graph& graph, void* data) const {
    return graph.real(CUDNN_DATA_BFLOAT16, keys(), strides(shape.kv_heads), data);
  }
  [[nodiscard]] Tensor key_transposed(Graph& graph, void* data) const {
    return graph.real(CUDNN_DATA_BFLOAT16, swapped(keys()), swapped(strides(shape.kv_heads)), data);
  }
  [[nodiscard]] Tensor row_number(Graph& graph, float* data) const {
    return graph.real(CUDNN_DATA_FLOAT, queries(1), packed(queries(1)), data);
  }
};

// Scores of keys after the query become the lowest number.
Tensor masked(Graph& graph, const Frame& frame, Tensor scores) {
  if (!frame.shape.causal) return scores;
  const auto index = [&](std::int64_t axis) {
    return graph.pointwise({.mode = CUDNN_POINTWISE_GEN_INDEX,
                            .x = scores,
                            .y = graph.between(frame.scores(), CUDNN_DATA_INT32),
                            .axis = axis,
                            .precision = CUDNN_DATA_INT32});
  };
  const Tensor row = index(2), column = index(3);
  const Tensor seen = graph.pointwise({.mode = CUDNN_POINTWISE_CMP_GE,
                                       .x = row,
                                       .y = graph.between(frame.scores(), CUDNN_DATA_BOOLEAN),
                                       .b = column,
                                       .precision = CUDNN_DATA_BOOLEAN});
  return graph.pointwise({.mode = CUDNN_POINTWISE_BINARY_SELECT,
                          .x = scores,
                          .y = graph.between(frame.scores()),
                          .b = graph.number(-FLT_MAX),
                          .t = seen});
}

// O = softmax(scale Q K^T) V, statistics = maximum + log(sum).
void add_forward(Graph& graph, const Frame& f) {
  const auto step = [&](cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y) {
    return graph.pointwise({.mode = mode, .x = x, .y = y, .b = b});
  };
  const auto wide = [&] { return graph.between(f.scores()); };
  const auto narrow = [&] { return graph.between(f.queries(1)); };
  Tensor scores = graph.matmul(f.query_like(graph, f.at.q), f.key_transposed(graph, f.at.k), wide());
  scores = step(CUDNN_POINTWISE_MUL, scores, graph.number(attention_scale(f.shape)), wide());
  scores = masked(graph, f, scores);
  const Tensor largest = graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, narrow());
  const Tensor below = step(CUDNN_POINTWISE_SUB, scores, largest, wide());
  const Tensor raised = step(CUDNN_POINTWISE_EXP, below, nullptr, wide());
  const Tensor sum = graph.reduce(CUDNN_REDUCE_TENSOR_ADD, raised, narrow());
  const Tensor log = step(CUDNN_POINTWISE_LOG, sum, nullptr, narrow());
  step(CUDNN_POINTWISE_ADD, largest, log, f.row_number(graph, f.at.statistics));
  const Tensor shares =
      step(CUDNN_POINTWISE_DIV, raised, sum, graph.between(f.scores(), CUDNN_DATA_BFLOAT16));
  graph.matmul(shares, f.key_like(graph, f.at.v), f.query_like(graph, f.at.o));
}

// C = A^T B summed over the query heads that share a key head.
void add_key_gradient(Graph& graph, const Frame& f, Tensor by_query, Tensor rows, void* gradient) {
  const Extents turned = swapped(f.scores());
  const Tensor by_key =
      graph.reshape(by_query, graph.between(turned, swapped(packed(f.scores())), CUDNN_DATA_BFLOAT16));
  if (f.shape.heads == f.shape.kv_heads) {
    graph.matmul(by_key, rows, f.key_like(graph, gradient));
    return;
  }
  const Tensor each_head =
      graph.matmul(by_key, rows, graph.between(f.queries(f.shape.head_size), CUDNN_DATA_BFLOAT16));
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, each_head, f.key_like(graph, gradient));
}

// What the backward pass keeps in fp32 between its kernels.
struct Accumulators {
  float *dq, *row_sums;
};

// dV = P^T dO; dS = P (dO V^T - rowsum(dO O)) scale; dK = dS^T Q; dQ = dS K.
void add_backward(Graph& graph, const Frame& f, const Accumulators& accumulators) {
  const auto step = [&](cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y) {
    return graph.pointwise({.mode = mode, .x = x, .y = y, .b = b});
  };
  const auto wide = [&] { return graph.between(f.scores()); };
  const std::int64_t size = f.shape.head_size;
  const Tensor q = f.query_like(graph, f.at.q), o = f.query_like(graph, f.at.o),
               d_o = f.query_like(graph, f.at.d_o);
  const Tensor k = f.key_transposed(graph, f.at.k), v = f.key_transposed(graph, f.at.v);
  const Tensor scale = graph.number(attention_scale(f.shape));

  const Tensor product = step(CUDNN_POINTWISE_MUL, d_o, o, graph.between(f.queries(size)));
  const Tensor dot = graph.reduce(CUDNN_REDUCE_TENSOR_ADD, product, graph.between(f.queries(1)));
  const Tensor row_sums =
      step(CUDNN_POINTWISE_MUL, dot, graph.number(1.0F), f.row_number(graph, accumulators.row_sums));

  Tensor scores = graph.matmul(q, k, wide());
  scores = step(CUDNN_POINTWISE_MUL, scores, scale, wide());
  scores = masked(graph, f, scores);
  scores = step(CUDNN_POINTWISE_SUB, scores, f.row_number(graph, f.at.statistics), wide());
  const Tensor shares = step(CUDNN_POINTWISE_EXP, scores, nullptr, wide());
  add_key_gradient(graph, f, shares, d_o, f.at.dv);

  Tensor slope = graph.matmul(d_o, v, wide());
  slope = step(CUDNN_POINTWISE_SUB, slope, row_sums, wide());
  slope = step(CUDNN_POINTWISE_MUL, slope, shares, wide());
  slope = step(CUDNN_POINTWISE_MUL, slope, scale, wide());
  add_key_gradient(graph, f, slope, q, f.at.dk);

  const Tensor k_rows =
      graph.reshape(k, graph.between(f.keys(), f.strides(f.shape.kv_heads), CUDNN_DATA_BFLOAT16));
  const Tensor dq = graph.accumulator(f.queries(size), accumulators.dq);
  graph.matmul(slope, k_rows, dq);
  step(CUDNN_POINTWISE_IDENTITY, dq, nullptr, f.query_like(graph, f.at.dq));
}

class Handle {
 public:
  Handle() { check(cudnnCreate(&handle_), "create handle"); }
  ~Handle() {
    if (handle_ != nullptr) (void)cudnnDestroy(handle_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  [[nodiscard]] cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

}  // namespace

struct CudnnAttention::State {
  Handle handle;
  Graph graph;
  DeviceMemory dq, row_sums, workspace;
  std::vector<Descriptor> plan_and_pack;
};

CudnnAttention::CudnnAttention(Harness& harness, const AttentionPoint& shape,
                               const AttentionOperands& operands) {
  if (cudnnGetVersion() < kOldestCudnn)
    throw Unmeasurable("attention needs cuDNN 9.6 or newer, this is " + std::to_string(cudnnGetVersion()));
  state_ = std::make_unique<State>();
  State& s = *state_;
  const Frame frame{shape, operands};
  if (shape.backward) {
    const std::int64_t rows = shape.batch * shape.heads * shape.sequence;
    s.dq = harness.allocate(rows * shape.head_size * 4);
    s.row_sums = harness.allocate(rows * 4);
    harness.poison(s.dq);  // an engine that does not begin it anew is seen by the check
    harness.poison(s.row_sums);
    add_backward(s.graph, frame, {s.dq.as<float>(), s.row_sums.as<float>()});
  } else {
    add_forward(s.graph, frame);
  }
  s.plan_and_pack.push_back(s.graph.plan(s.handle.get()));
  std::int64_t bytes = 0, count = 0;
  check(cudnnBackendGetAttribute(s.plan_and_pack[0].get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &count, &bytes),
        "workspace size");
  if (bytes > 0) s.workspace = harness.allocate(bytes);
  s.plan_and_pack.push_back(s.graph.bindings(s.workspace.data()));
}

CudnnAttention::~CudnnAttention() = default;

void CudnnAttention::enqueue(cudaStream_t stream) const {
  check(cudnnSetStream(state_->handle.get(), stream), "set stream");
  check(cudnnBackendExecute(state_->handle.get(), state_->plan_and_pack[0].get(),
                            state_->plan_and_pack[1].get()),
        "execute");
}

}  // namespace stagecraft

#endif
