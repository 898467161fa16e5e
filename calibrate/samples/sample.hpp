// One measurement of one operator on one device, and its one-line JSON form.
//
// Shared by the GPU suite, which writes samples, and by the fit, which reads them; so it needs the standard
// library and nothing else, and builds with nvcc. A samples file is JSON lines: a line is complete or it is
// not there, which is what lets the suite resume after any interruption and lets files be concatenated.
//
//   {"schema":"stagecraft.sample/1","family":"gemm","operator":"gemm","shape":{"m":4096,"n":4096,"k":4096,"batch":1},
//    "tags":{"layout":"TN","dtype":"bf16","load":"burst"},"median_s":1.9e-4,"min_s":…,"spread":0.004,"repeats":40,
//    "flops":…,"bytes":…,"sm_mhz":1755,"power_w":…,
//    "setup":{"device":"NVIDIA H200","driver":"580.159.04",…},"date":"2026-11-21"}
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stagecraft {

// What a file of samples was made on; equal for all samples that are fitted together.
struct SampleSetup {
  std::string device;  // as the driver names it
  std::string driver;
  std::string cuda, cublas, cudnn, nccl;  // versions; empty where not used
  std::string clock_policy;               // "default", "locked 1410 MHz"
  int power_limit_w = 0;                  // 0 = not known

  friend bool operator==(const SampleSetup&, const SampleSetup&) = default;
};

struct Sample {
  std::string family;  // "gemm" "kernel" "attention" "system" "nccl" "interference"
  // "gemm", "layernorm_forward", "flash_backward", "copy", "all_reduce"; key `operator` in JSON
  std::string op;
  std::map<std::string, std::int64_t> shape;  // named extents: m n k batch, tokens hidden, bytes ranks, ...
  std::map<std::string, std::string> tags;    // layout dtype variant cache load algorithm ...
  double median_s = 0;                        // of one execution
  double min_s = 0;
  double spread = 0;  // (p84 - p16) / (2 * median)
  int repeats = 0;
  double flops = 0;  // of one execution; 0 where it means nothing
  double bytes = 0;  // HBM or wire traffic by count
  // Largest error against float64, relative to the operator's bound (<= 1 is right); -1 = not checked.
  double max_error = 0;
  int sm_mhz = 0;      // SM clock while it ran
  double power_w = 0;  // board power while it ran; 0 = not read
  SampleSetup setup;
  std::string date;  // ISO, UTC

  friend bool operator==(const Sample&, const Sample&) = default;
};

// Identity of what was measured (family, op, shape, tags): equal keys are the same point, measured again.
// Tags whose name begins with "seen_" are observations (seen_algo: which algorithm the library chose), not
// choices of ours: two samples that differ in them alone are the same point, so they are no part of the key.
[[nodiscard]] std::string sample_key(const Sample& sample);

// One line without newline. Keys in the order above, doubles in their shortest form that reads back to the
// same bits. Throws std::invalid_argument on what parse_sample() would refuse to read back: NaN, infinities,
// times that are not positive.
[[nodiscard]] std::string to_json_line(const Sample& sample);

struct SampleError {
  int line = 0;  // from 1
  std::string message;
};

// Begins a line of samples that is an item of a YAML list, as importers write them.
inline constexpr std::string_view kYamlItem = "- ";

// Reads one line, as such an item or bare. Refused: foreign schema, missing or unknown keys, NaN, infinities,
// times that are not positive, negative extents, trailing text.
[[nodiscard]] std::variant<Sample, std::string> parse_sample(std::string_view line);

struct SampleFile {
  std::vector<Sample> samples;
  // A last line without newline is an interruption, not an error: it is dropped.
  std::vector<SampleError> errors;
};
[[nodiscard]] SampleFile parse_samples(std::string_view text);

// Bytes of `text` up to and including its last newline: where an interrupted file is cut before anything is
// appended.
[[nodiscard]] std::size_t complete_size(std::string_view text);

// A point that somebody wants measured: the keys family, operator, shape and tags of a sample, and optionally
// `value`, what the point is worth (the larger the earlier; 1 where absent). No other key is read.
//
//   {"family":"gemm","operator":"gemm","shape":{"m":4096,"n":4096,"k":4096,"batch":1},"tags":{"layout":"TN"},"value":3.5}
struct WantedPoint {
  Sample point;  // only family, op, shape and tags are set
  double value = 1;
};
[[nodiscard]] std::variant<WantedPoint, std::string> parse_wanted(std::string_view line);
[[nodiscard]] std::string to_json_line(const WantedPoint& wanted);

}  // namespace stagecraft
