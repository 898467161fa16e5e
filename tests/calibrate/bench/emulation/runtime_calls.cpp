#include "tests/calibrate/bench/emulation/runtime_calls.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace emulation = stagecraft::emulation;
using emulation::Status;

namespace {

cudaError_t code_of(Status status) {
  switch (status) {
    case Status::kGood:
      return cudaSuccess;
    case Status::kBadConfiguration:
      return cudaErrorInvalidConfiguration;
    case Status::kOutOfMemory:
      return cudaErrorMemoryAllocation;
    case Status::kLost:
      return cudaErrorLaunchFailure;
    case Status::kNotReady:
      return cudaErrorNotReady;
    case Status::kBadValue:
      return cudaErrorInvalidValue;
  }
  return cudaErrorUnknown;
}

// Nothing works on a lost device.
cudaError_t still_there() {
  return emulation::lost_why().empty() ? cudaSuccess : cudaErrorLaunchFailure;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t code) {
  return code == cudaSuccess              ? "cudaSuccess"
         : code == cudaErrorLaunchFailure ? "cudaErrorLaunchFailure"
                                          : "cudaError";
}
const char* cudaGetErrorString(cudaError_t code) {
  if (code == cudaErrorLaunchFailure) return emulation::lost_why().c_str();
  return code == cudaErrorMemoryAllocation       ? "out of memory"
         : code == cudaErrorInvalidConfiguration ? "invalid configuration argument"
                                                 : "an error of the emulation";
}
cudaError_t cudaGetLastError() {
  return code_of(emulation::last_status());
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* index) {
  *index = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int index) {
  return index == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {.name = "emulation, no GPU",
                 .major = 9,
                 .minor = 0,
                 .multiProcessorCount = emulation::machine().sms,
                 .l2CacheSize = 64 << 10,
                 .totalGlobalMem = emulation::machine().memory,
                 .sharedMemPerBlockOptin = 227 * 1024};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  *value = which == cudaDevAttrGlobalMemoryBusWidth ? 5120 : 1'500'000;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int) {
  (void)std::snprintf(text, static_cast<std::size_t>(size), "0000:00:00.0");
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  return code_of(emulation::synchronize_all());
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (still_there() != cudaSuccess) return still_there();
  *memory = emulation::allocate(bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (memory != nullptr) emulation::release(memory);
  return still_there();
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return still_there();
}
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  *free_bytes = emulation::free_bytes();
  *total = emulation::machine().memory;
  return still_there();
}

// From pageable memory CUDA returns as soon as it has its own copy, which reaches the device some time later
// and in order with the default stream only: streams that do not block do not wait for it.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (kind != cudaMemcpyHostToDevice) {
    (void)cudaMemcpyAsync(to, from, bytes, kind, nullptr);
    return cudaStreamSynchronize(nullptr);
  }
  std::vector<char> staged(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
  emulation::queue(nullptr, [to, staged] { std::memcpy(to, staged.data(), staged.size()); });
  return still_there();
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  emulation::queue(stream, [=] {
    std::memcpy(to, from, bytes);
    emulation::advance(2000 + bytes / 1000);
  });
  return still_there();
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  emulation::queue(stream, [=] {
    std::memset(memory, value, bytes);
    emulation::advance(2000 + bytes / 1000);
  });
  return still_there();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;  // the others wait for the default stream
  *stream = emulation::make_stream();
  return still_there();
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  emulation::remove(stream);
  return still_there();
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return code_of(emulation::synchronize(stream));
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new emulation::Event;
  return still_there();
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event->pending > 0) (void)emulation::synchronize_all();
  delete event;
  return still_there();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  ++event->pending;
  emulation::queue(stream, [event] {
    --event->pending;
    emulation::advance(500);
    event->nanoseconds = emulation::global_timer();
  });
  return still_there();
}
// The last error, too, as on a device: who asks and goes on must clear it.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->pending == 0) return still_there();
  emulation::note(Status::kNotReady);
  return cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return event->pending > 0 ? code_of(emulation::synchronize_all()) : still_there();
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  if (start->pending > 0 || stop->pending > 0) return cudaErrorNotReady;
  if (start->nanoseconds == 0 || stop->nanoseconds == 0) return cudaErrorInvalidValue;
  *milliseconds = static_cast<float>(static_cast<double>(stop->nanoseconds - start->nanoseconds) * 1e-6);
  return still_there();
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->capture = new emulation::Graph;
  return still_there();
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = stream->capture;
  stream->capture = nullptr;
  return still_there();
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = new emulation::Graph(*graph);
  return still_there();
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  return still_there();
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  for (const emulation::Work& node : executable->nodes) emulation::queue(stream, node);
  return still_there();
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return still_there();
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return still_there();
}
