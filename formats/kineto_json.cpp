#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <streambuf>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "base/yaml.hpp"
#include "formats/input_text.hpp"
#include "formats/kineto_events.hpp"

namespace stagecraft::detail {
namespace {

// Levels of brackets, from the outermost.
constexpr int kFile = 1;         // its keys are sections
constexpr int kSection = 2;      // traceEvents and deviceProperties are lists, distributedInfo has keys
constexpr int kEntry = 3;        // an event or a device, whose keys are fields
constexpr int kArguments = 4;    // `args` of an event
constexpr int kList = 5;         // that an argument is
constexpr int kShape = 6;        // of a tensor, in "Input Dims" and "Input Strides"
constexpr int kShapeInList = 7;  // of a tensor in a list of tensors
constexpr int kGroup = 4;        // of distributedInfo.pg_config, a list
constexpr int kGroupRanks = 5;
constexpr int kDeepest = 64;
constexpr int kMostMessages = 10;                  // a wrong file may have a million of the same
constexpr std::int64_t kMostElements = 1LL << 50;  // of a list of tensors; more is no list that anybody has
constexpr std::int64_t kMostNs = (1LL << 62) - 2;  // 146 years; two of them add up

// Passes another buffer on and counts the lines read so far.
class LineCounter : public std::streambuf {
 public:
  explicit LineCounter(std::istream& in) : in_(in), chunk_(std::size_t{1} << 16) {}

  // Each byte is counted once, however often this is called.
  [[nodiscard]] int line() {
    lines_ += static_cast<int>(std::count(counted_, static_cast<const char*>(gptr()), '\n'));
    counted_ = gptr();
    return lines_ + 1;
  }
  [[nodiscard]] bool at_end() const { return ended_; }

 protected:
  int_type underflow() override {
    (void)line();
    in_.read(chunk_.data(), static_cast<std::streamsize>(chunk_.size()));
    const std::streamsize got = in_.gcount();
    setg(chunk_.data(), chunk_.data(), chunk_.data() + got);
    counted_ = gptr();
    ended_ = got == 0;
    return ended_ ? traits_type::eof() : traits_type::to_int_type(*gptr());
  }

 private:
  std::istream& in_;
  std::vector<char> chunk_;
  const char* counted_ = nullptr;  // up to here
  int lines_ = 0;
  bool ended_ = false;
};

// "[0, 1, 2]"; empty where an ellipsis says that some are left out.
std::vector<int> ranks_in(std::string_view text) {
  std::vector<int> ranks;
  if (text.find("...") != std::string_view::npos) return ranks;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int rank = 0;
    const auto [stop, error] = std::from_chars(at, end, rank);
    if (error == std::errc() && rank >= 0) ranks.push_back(rank);
    at = error == std::errc::invalid_argument ? at + 1 : stop;
  }
  return ranks;
}

enum class SliceKind { kDevice, kLaunch, kOp, kAnnotation };

struct SliceCategory {
  std::string_view name;
  SliceKind kind;
  DeviceWork work = DeviceWork::kKernel;
};
constexpr SliceCategory kCategories[] = {
    {"kernel", SliceKind::kDevice},
    {"gpu_memcpy", SliceKind::kDevice, DeviceWork::kCopy},
    {"gpu_memset", SliceKind::kDevice, DeviceWork::kSet},
    {"cuda_runtime", SliceKind::kLaunch},
    {"cuda_driver", SliceKind::kLaunch},
    {"cpu_op", SliceKind::kOp},
    {"user_annotation", SliceKind::kAnnotation},
    {"memcpy", SliceKind::kDevice, DeviceWork::kCopy},
    {"memset", SliceKind::kDevice, DeviceWork::kSet},
    {"runtime", SliceKind::kLaunch},
    {"operator", SliceKind::kOp},
};

const SliceCategory* category_of(const std::string& name) {
  const std::string lower = lower_case(name);
  const auto* const found = std::ranges::find(kCategories, lower, &SliceCategory::name);
  return found == std::end(kCategories) ? nullptr : found;
}

// The object of traceEvents that is being read.
struct RawEvent {
  int line = 0;
  std::string phase, category, name;
  std::optional<Duration> start, length;
  bool bad_time = false;
  std::int64_t thread = 0, correlation = -1, external_id = -1, stream = 0, device = 0;
  KinetoCollective collective;
  KinetoInputs inputs;
};

// Keeps equal items once.
template <class Item>
class Interner {
 public:
  explicit Interner(std::vector<Item>& items) : items_(items) {}
  std::int32_t operator()(const std::string& key, Item item) {
    const auto [at, is_new] = known_.try_emplace(key, static_cast<std::int32_t>(items_.size()));
    if (is_new) items_.push_back(std::move(item));
    return at->second;
  }

 private:
  std::vector<Item>& items_;
  std::map<std::string, std::int32_t> known_;
};

std::string key_of(const KinetoCollective& c) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", c.name, c.in_elements, c.out_elements, c.group_size,
                     c.dtype, c.group, c.group_description, fmt::join(c.ranks, ","));
}

std::string key_of(const KinetoOp& op) {
  std::string key = op.name;
  for (const auto* lists : {&op.inputs.dims, &op.inputs.strides}) {
    key += '\n';
    for (const std::vector<std::int64_t>& list : *lists) key += fmt::format("[{}]", fmt::join(list, ","));
  }
  return fmt::format("{}\n{}\n{}\n{}", key, join(op.inputs.types, ","),
                     fmt::join(op.inputs.list_elements, ","), join(op.inputs.values, ","));
}

// Handler of nlohmann's parser events: only the path of keys down to arguments matters.
class KinetoHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  KinetoHandler(LineCounter& lines, const std::string& name, Diagnostics& diagnostics)
      : lines_(lines),
        name_(name),
        diagnostics_(diagnostics),
        names_(out_.trace.names),
        ops_(out_.trace.ops),
        collectives_(out_.trace.collectives) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return whole(value); }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto kMost = static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    return whole(static_cast<std::int64_t>(std::min(value, kMost)));
  }
  bool number_float(number_float_t, const string_t& text) override {
    if (in_event() && depth_ == kEntry) take_time(text);
    return true;
  }
  bool string(string_t& text) override;
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(false); }
  bool end_object() override;
  bool start_array(std::size_t) override { return open(true); }
  bool end_array() override {
    if (in_arguments() && depth_ == kShapeInList && argument_ == "Input Dims") finish_list_tensor();
    --depth_;
    return true;
  }
  bool key(string_t& text) override {
    if (depth_ == kFile) {
      section_ = text;
      in_events_ = text == "traceEvents";
    }
    if (depth_ == kSection) outer_ = text;
    if (depth_ == kEntry) {
      field_ = text;
      in_args_ = text == "args";
    }
    if (depth_ == kArguments) argument_ = text;
    return true;
  }
  bool parse_error(std::size_t, const std::string& token, const nlohmann::json::exception&) override {
    if (lines_.at_end())
      return refuse("cut-off", lines_.line(), "ends in the middle of the JSON text",
                    "the profiler was interrupted while it wrote, or the copy is not complete");
    return refuse(
        "json-syntax", lines_.line(),
        fmt::format("is no JSON from here on, at {}",
                    in_quotes(token.substr(token.size() - std::min<std::size_t>(token.size(), 40)))),
        {});
  }

  std::optional<KinetoEvents> result();

 private:
  [[nodiscard]] bool in_event() const { return in_events_ && depth_ >= kEntry; }
  [[nodiscard]] bool in_arguments() const { return in_event() && in_args_ && depth_ >= kArguments; }
  bool refuse(std::string code, int line, std::string message, std::string hint);
  bool open(bool array);
  bool whole(std::int64_t value);
  void take_time(const std::string& decimal);
  void argument(std::int64_t value);
  void argument(const std::string& text);
  void finish_list_tensor();
  void finish_event();
  void finish_device(const SliceCategory& category);
  void finish_op();
  void finish_annotation();
  [[nodiscard]] std::int32_t collective_of_event();

  LineCounter& lines_;
  const std::string& name_;
  Diagnostics& diagnostics_;
  KinetoEvents out_;
  Interner<std::string> names_;
  Interner<KinetoOp> ops_;
  Interner<KinetoCollective> collectives_;
  int depth_ = 0;
  bool saw_events_ = false, refused_ = false;
  bool in_events_ = false, in_args_ = false;  // keys of kFile and kEntry
  int messages_ = 0;
  std::string section_, outer_, field_, argument_;  // keys of kFile to kArguments
  RawEvent event_;
  int device_id_ = 0;                     // of the entry of deviceProperties
  std::string group_name_, device_name_;  // of the entry of pg_config, of deviceProperties
  std::vector<int> group_ranks_;
  std::int64_t list_tensor_ = 1;  // elements of the tensor of a list that is being read
};

bool KinetoHandler::refuse(std::string code, int line, std::string message, std::string hint) {
  refused_ = true;
  if (++messages_ <= kMostMessages)
    diagnostics_.error({.code = std::move(code),
                        .where = {name_, line, 0},
                        .message = std::move(message),
                        .hint = std::move(hint)});
  return false;
}

bool KinetoHandler::open(bool array) {
  ++depth_;
  if (depth_ > kDeepest)
    return refuse("too-deep", lines_.line(), fmt::format("is nested deeper than {} levels", kDeepest), {});
  if (depth_ == kFile && array)
    return refuse("not-kineto", lines_.line(), "is a list, where PyTorch's profiler writes an object",
                  "the file of torch.profiler's export_chrome_trace is meant");
  if (depth_ == kSection && in_events_) {
    saw_events_ = true;
    if (!array) return refuse("not-kineto", lines_.line(), "traceEvents is no list", {});
  }
  if (in_events_ && depth_ == kEntry) {
    event_ = RawEvent{};
    event_.line = lines_.line();
    field_.clear();
    in_args_ = false;
  }
  // "Input Dims": a list for each argument; a list of tensors is a level deeper, and has no one shape.
  if (in_arguments() && array) {
    auto* lists = argument_ == "Input Dims"      ? &event_.inputs.dims
                  : argument_ == "Input Strides" ? &event_.inputs.strides
                                                 : nullptr;
    if (lists != nullptr && depth_ == kShape) lists->emplace_back();
    if (lists != nullptr && depth_ == kShapeInList && !lists->empty()) lists->back().clear();
    if (argument_ == "Input Dims" && depth_ == kShape) event_.inputs.list_elements.push_back(0);
    if (argument_ == "Input Dims" && depth_ == kShapeInList) list_tensor_ = 1;
  }
  return true;
}

bool KinetoHandler::whole(std::int64_t value) {
  if (in_arguments()) {
    argument(value);
  } else if (in_event() && depth_ == kEntry) {
    if (field_ == "tid") event_.thread = value;
    if (field_ == "ts" || field_ == "dur") take_time(fmt::format("{}", value));
  } else if (section_ == "distributedInfo" && depth_ == kSection) {
    constexpr std::int64_t kMostRanks = 1LL << 30;
    const bool in_range = value >= 0 && value <= kMostRanks;
    if (outer_ == "rank" && in_range) out_.trace.rank = static_cast<int>(value);
    if (outer_ == "world_size" && in_range) out_.trace.world_size = static_cast<int>(value);
  } else if (section_ == "distributedInfo" && depth_ == kGroupRanks && argument_ == "ranks") {
    if (value >= 0 && value <= std::numeric_limits<int>::max())
      group_ranks_.push_back(static_cast<int>(value));
  } else if (section_ == "deviceProperties" && depth_ == kEntry && field_ == "id") {
    device_id_ = static_cast<int>(std::clamp<std::int64_t>(value, -1, 1 << 20));
  } else if (section_ == "baseTimeNanoseconds" && depth_ == kFile) {
    out_.base_ns = std::clamp<std::int64_t>(value, 0, kMostNs);
  }
  return true;
}

void KinetoHandler::take_time(const std::string& decimal) {
  if (field_ != "ts" && field_ != "dur") return;
  const std::optional<Duration> time = microseconds(decimal);
  constexpr Duration kLongest = std::chrono::hours(24 * 30);  // keeps sums of lengths in range
  if (!time || *time < Duration::zero() || (field_ == "dur" && *time > kLongest)) event_.bad_time = true;
  (field_ == "ts" ? event_.start : event_.length) = time;
}

// Keeps only how many elements all tensors of a list have.
void KinetoHandler::finish_list_tensor() {
  if (event_.inputs.list_elements.empty()) return;
  std::int64_t& sum = event_.inputs.list_elements.back();
  sum = std::min(sum + list_tensor_, kMostElements);
}

void KinetoHandler::argument(std::int64_t value) {
  if (depth_ == kShapeInList && argument_ == "Input Dims") {
    const bool fits = value >= 0 && (value == 0 || list_tensor_ <= kMostElements / value);
    list_tensor_ = fits ? list_tensor_ * value : kMostElements;
  }
  if (depth_ == kShape && argument_ == "Input Dims" && !event_.inputs.dims.empty())
    event_.inputs.dims.back().push_back(value);
  if (depth_ == kShape && argument_ == "Input Strides" && !event_.inputs.strides.empty())
    event_.inputs.strides.back().push_back(value);
  if (depth_ != kArguments) return;
  if (argument_ == "correlation") event_.correlation = value;
  if (argument_ == "External id" || argument_ == "external id") event_.external_id = value;
  if (argument_ == "stream") event_.stream = value;
  if (argument_ == "device") event_.device = value;
  if (argument_ == "In msg nelems") event_.collective.in_elements = value;
  if (argument_ == "Out msg nelems") event_.collective.out_elements = value;
  if (argument_ == "Group size")
    event_.collective.group_size = static_cast<int>(std::clamp<std::int64_t>(value, 0, 1 << 30));
}

void KinetoHandler::argument(const std::string& text) {
  if (argument_ == "Input type" && depth_ == kList) event_.inputs.types.push_back(text);
  if (argument_ == "Concrete Inputs" && depth_ == kList) event_.inputs.values.push_back(text);
  if (depth_ != kArguments) return;
  if (argument_ == "Collective name") event_.collective.name = text;
  if (argument_ == "dtype") event_.collective.dtype = text;
  if (argument_ == "Process Group Name") event_.collective.group = text;
  if (argument_ == "Process Group Description") event_.collective.group_description = text;
  if (argument_ == "Process Group Ranks") event_.collective.ranks = ranks_in(text);
}

bool KinetoHandler::string(string_t& text) {
  if (section_ == "distributedInfo" && depth_ == kSection && outer_ == "nccl_version") {
    out_.trace.nccl_version = text;
  } else if (section_ == "distributedInfo" && depth_ == kGroup) {
    if (argument_ == "pg_name") group_name_ = text;
    if (argument_ == "ranks") group_ranks_ = ranks_in(text);
  } else if (section_ == "deviceProperties" && depth_ == kEntry && field_ == "name") {
    device_name_ = text;
  } else if (in_event() && depth_ == kEntry) {
    if (field_ == "ph") event_.phase = text;
    if (field_ == "cat") event_.category = text;
    if (field_ == "name") event_.name = text;
    if (field_ == "ts" || field_ == "dur") event_.bad_time = true;
  } else if (in_arguments()) {
    argument(text);
  }
  return true;
}

bool KinetoHandler::end_object() {
  if (in_events_) {
    if (depth_-- == kEntry) finish_event();
    return true;
  }
  if (section_ == "distributedInfo" && depth_ == kGroup) {
    if (!group_name_.empty()) out_.ranks_of_group[group_name_] = std::move(group_ranks_);
    group_name_.clear();
    group_ranks_.clear();
  }
  if (section_ == "deviceProperties" && depth_ == kEntry) {
    out_.device_names[device_id_] = std::move(device_name_);
    device_name_.clear();
  }
  --depth_;
  return true;
}

void KinetoHandler::finish_event() {
  const SliceCategory* category = category_of(event_.category);
  if (category == nullptr || (event_.phase != "X" && category->kind != SliceKind::kDevice)) return;
  if (event_.phase != "X") {
    refuse("bad-event", event_.line,
           fmt::format("the {} {} is no complete slice (ph: X)", category->name, in_quotes(event_.name)),
           "PyTorch's profiler writes complete slices");
    return;
  }
  if (event_.bad_time || !event_.start) {
    refuse("bad-event", event_.line,
           fmt::format("the {} {} has no time that could be read", category->name, in_quotes(event_.name)),
           "`ts` and `dur` are microseconds, not negative, and no slice lasts a month");
    return;
  }
  if (!event_.length) ++out_.without_duration;
  switch (category->kind) {
    case SliceKind::kDevice:
      return finish_device(*category);
    case SliceKind::kLaunch:
      if (event_.correlation >= 0)
        out_.launches.push_back({.correlation = event_.correlation,
                                 .external_id = event_.external_id,
                                 .thread = event_.thread,
                                 .start = *event_.start});
      return;
    case SliceKind::kOp:
      return finish_op();
    case SliceKind::kAnnotation:
      return finish_annotation();
  }
}

void KinetoHandler::finish_op() {
  if (event_.name.starts_with("autograd::engine::")) out_.backward_threads.insert(event_.thread);
  if (event_.external_id < 0) return;
  // Values change from call to call; those of attention say its mask, of others they would be kept for
  // nothing.
  if (!contains_any(lower_case(event_.name), {"atten", "attn"})) event_.inputs.values.clear();
  const std::int32_t collective = collective_of_event();
  KinetoOp op{.name = std::move(event_.name), .inputs = std::move(event_.inputs)};
  const std::string key = key_of(op);
  out_.op_slices.push_back({.external_id = event_.external_id,
                            .thread = event_.thread,
                            .start = *event_.start,
                            .length = event_.length.value_or(Duration{}),
                            .op = ops_(key, std::move(op)),
                            .collective = collective});
}

std::int32_t KinetoHandler::collective_of_event() {
  return event_.collective.name.empty() ? -1 : collectives_(key_of(event_.collective), event_.collective);
}

void KinetoHandler::finish_device(const SliceCategory& category) {
  const int device = static_cast<int>(std::clamp<std::int64_t>(event_.device, 0, 1 << 20));
  out_.device_slices.push_back(
      {.kernel = {.work = category.work,
                  .name = static_cast<std::uint32_t>(names_(event_.name, event_.name)),
                  .start = *event_.start,
                  .length = event_.length.value_or(Duration{}),
                  .device = device,
                  .stream = event_.stream,
                  .collective = collective_of_event()},
       .correlation = event_.correlation,
       .external_id = event_.external_id});
}

void KinetoHandler::finish_annotation() {
  constexpr std::string_view kStep = "ProfilerStep#", kOptimizer = "Optimizer.step";
  const Duration length = event_.length.value_or(Duration{});
  if (event_.name.starts_with(kOptimizer)) out_.optimizer_steps.push_back({*event_.start, length});
  if (!event_.name.starts_with(kStep)) return;
  KinetoStep step{.start = *event_.start, .length = length};
  const std::string_view number = std::string_view(event_.name).substr(kStep.size());
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), step.number);
  if (error == std::errc() && step.number >= 0) out_.trace.steps.push_back(step);
}

std::optional<KinetoEvents> KinetoHandler::result() {
  if (messages_ > kMostMessages)
    diagnostics_.error({.code = "bad-event",
                        .where = {name_, 0, 0},
                        .message = fmt::format("{} more of these", messages_ - kMostMessages)});
  if (!refused_ && !saw_events_)
    refuse("not-kineto", 0, "has no traceEvents",
           "the file of torch.profiler's export_chrome_trace is meant");
  if (refused_) return std::nullopt;
  return std::move(out_);
}

// Thousandths: "12" and "3456" give 12346.
std::optional<std::int64_t> fixed_point(std::string_view digits, std::string_view decimals) {
  std::string text(digits);
  for (std::size_t i = 0; i < 3; ++i) text += i < decimals.size() ? decimals[i] : '0';
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > kMostNs) return std::nullopt;
  return value + (decimals.size() > 3 && decimals[3] >= '5' ? 1 : 0);
}

}  // namespace

std::optional<Duration> microseconds(const std::string& decimal) {
  std::string_view rest = decimal;
  const bool negative = rest.starts_with('-');
  if (negative) rest.remove_prefix(1);
  std::optional<std::int64_t> ns;
  if (rest.find_first_of("eE") != std::string_view::npos) {
    const std::optional<double> value = parse_number(rest);
    if (value && *value * 1e3 < static_cast<double>(kMostNs)) ns = std::llround(*value * 1e3);
  } else {
    const std::size_t point = std::min(rest.find('.'), rest.size());
    ns = fixed_point(rest.substr(0, point), rest.substr(std::min(point + 1, rest.size())));
  }
  if (!ns) return std::nullopt;
  return Duration(negative ? -*ns : *ns);
}

std::optional<KinetoEvents> read_kineto_events(std::istream& in, const std::string& name,
                                               Diagnostics& diagnostics) {
  LineCounter counter(in);
  std::istream stream(&counter);
  KinetoHandler handler(counter, name, diagnostics);
  (void)nlohmann::json::sax_parse(stream, &handler);  // the handler has reported mistakes
  return handler.result();
}

}  // namespace stagecraft::detail
