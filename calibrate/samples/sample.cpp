#include "calibrate/samples/sample.hpp"

#include <cmath>
#include <concepts>
#include <functional>
#include <limits>
#include <set>
#include <stdexcept>

#include "calibrate/samples/json_line.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kSchema = "stagecraft.sample/1";
constexpr std::string_view kObserved = "seen_";

[[noreturn]] void refuse(const std::string& message) {
  throw JsonError(message);
}

// The members of an object, each of which must be asked for.
class Members {
 public:
  Members(const JsonValue& object, std::string what) : object_(object), what_(std::move(what)) {
    if (!object.is_object()) refuse(what_ + " must be an object");
  }

  [[nodiscard]] const JsonValue* find(const std::string& key) {
    asked_.insert(key);
    for (const auto& [name, value] : object_.members())
      if (name == key) return &value;
    return nullptr;
  }
  [[nodiscard]] const JsonValue& at(const std::string& key) {
    const JsonValue* value = find(key);
    if (value == nullptr) refuse(what_ + " has no key \"" + key + "\"");
    return *value;
  }
  [[nodiscard]] std::string text(const std::string& key) {
    const JsonValue& value = at(key);
    if (!value.is_string()) refuse("\"" + key + "\" must be a string");
    return value.text();
  }
  [[nodiscard]] double number(const std::string& key, double least) {
    const double value = at(key).number(key);
    if (value < least)
      refuse("\"" + key + "\" is " + at(key).text() + ", at least " + shortest(least) + " is right");
    return value;
  }
  [[nodiscard]] double seconds(const std::string& key) {
    const double value = at(key).number(key);
    if (!(value > 0)) refuse("\"" + key + "\" is " + at(key).text() + ", a time must be positive");
    return value;
  }
  template <std::integral T>
  [[nodiscard]] T integer(const std::string& key, std::int64_t least) {
    const std::int64_t value = at(key).integer(key);
    if (value < least)
      refuse("\"" + key + "\" is " + at(key).text() + ", at least " + std::to_string(least) + " is right");
    if (value > std::numeric_limits<T>::max()) refuse("\"" + key + "\" is too large");
    return static_cast<T>(value);
  }
  // What nobody asked for is a mistake.
  void finish() const {
    for (const auto& [name, value] : object_.members())
      if (!asked_.contains(name)) refuse(what_ + " has the unknown key \"" + name + "\"");
  }

 private:
  const JsonValue& object_;
  std::string what_;
  std::set<std::string> asked_;
};

void read_point(Members& in, Sample& sample) {
  sample.family = in.text("family");
  sample.op = in.text("operator");
  if (sample.family.empty() || sample.op.empty()) refuse("family and operator must not be empty");
  Members shape(in.at("shape"), "shape");
  for (const auto& [name, value] : in.at("shape").members())
    sample.shape[name] = shape.integer<std::int64_t>(name, 0);
  Members tags(in.at("tags"), "tags");
  for (const auto& [name, value] : in.at("tags").members()) sample.tags[name] = tags.text(name);
}

SampleSetup read_setup(const JsonValue& value) {
  Members in(value, "setup");
  SampleSetup setup{.device = in.text("device"),
                    .driver = in.text("driver"),
                    .cuda = in.text("cuda"),
                    .cublas = in.text("cublas"),
                    .cudnn = in.text("cudnn"),
                    .nccl = in.text("nccl"),
                    .clock_policy = in.text("clock_policy"),
                    .power_limit_w = in.integer<int>("power_limit_w", 0)};
  in.finish();
  if (setup.device.empty()) refuse("setup.device must not be empty");
  return setup;
}

Sample read_sample(const JsonValue& value) {
  Members in(value, "a sample");
  if (const std::string schema = in.text("schema"); schema != kSchema)
    refuse("schema \"" + schema + "\", this program reads \"" + std::string(kSchema) + "\"");
  Sample sample;
  read_point(in, sample);
  sample.median_s = in.seconds("median_s");
  sample.min_s = in.seconds("min_s");
  if (sample.min_s > sample.median_s) refuse("\"min_s\" is above \"median_s\"");
  sample.spread = in.number("spread", 0);
  sample.repeats = in.integer<int>("repeats", 1);
  sample.flops = in.number("flops", 0);
  sample.bytes = in.number("bytes", 0);
  sample.max_error = in.number("max_error", -1);
  if (sample.max_error < 0 && sample.max_error != -1)
    refuse("\"max_error\" must be -1 (not checked) or not negative");
  sample.sm_mhz = in.integer<int>("sm_mhz", 0);
  sample.power_w = in.number("power_w", 0);
  sample.setup = read_setup(in.at("setup"));
  sample.date = in.text("date");
  in.finish();
  return sample;
}

WantedPoint read_wanted(const JsonValue& value) {
  Members in(value, "a wanted point");
  WantedPoint wanted;
  read_point(in, wanted.point);
  if (in.find("value") != nullptr) wanted.value = in.number("value", 0);
  in.finish();
  return wanted;
}

template <class T>
std::variant<T, std::string> guarded(std::string_view line, T (*read)(const JsonValue&)) {
  try {
    return read(parse_json(line));
  } catch (const JsonError& error) {
    return std::string(error.what());
  }
}

void write_point(JsonLineWriter& out, const Sample& sample) {
  out.text("family", sample.family);
  out.text("operator", sample.op);
  out.begin("shape");
  for (const auto& [name, extent] : sample.shape) out.integer(name, extent);
  out.end();
  out.begin("tags");
  for (const auto& [name, tag] : sample.tags) out.text(name, tag);
  out.end();
}

void write_setup(JsonLineWriter& out, const SampleSetup& setup) {
  out.begin("setup");
  out.text("device", setup.device);
  out.text("driver", setup.driver);
  out.text("cuda", setup.cuda);
  out.text("cublas", setup.cublas);
  out.text("cudnn", setup.cudnn);
  out.text("nccl", setup.nccl);
  out.text("clock_policy", setup.clock_policy);
  out.integer("power_limit_w", setup.power_limit_w);
  out.end();
}

}  // namespace

std::string sample_key(const Sample& sample) {
  std::string key = sample.family + "/" + sample.op;
  for (const auto& [name, extent] : sample.shape) key += " " + name + "=" + std::to_string(extent);
  for (const auto& [name, tag] : sample.tags)
    if (!name.starts_with(kObserved)) key += " " + name + ":" + tag;
  return key;
}

std::string to_json_line(const Sample& sample) {
  JsonLineWriter out;
  out.text("schema", std::string(kSchema));
  write_point(out, sample);
  out.number("median_s", sample.median_s);
  out.number("min_s", sample.min_s);
  out.number("spread", sample.spread);
  out.integer("repeats", sample.repeats);
  out.number("flops", sample.flops);
  out.number("bytes", sample.bytes);
  out.number("max_error", sample.max_error);
  out.integer("sm_mhz", sample.sm_mhz);
  out.number("power_w", sample.power_w);
  write_setup(out, sample.setup);
  out.text("date", sample.date);
  std::string line = std::move(out).line();
  if (const auto read = parse_sample(line); const auto* problem = std::get_if<std::string>(&read))
    throw std::invalid_argument("a sample that could not be read back: " + *problem);
  return line;
}

std::string to_json_line(const WantedPoint& wanted) {
  JsonLineWriter out;
  write_point(out, wanted.point);
  out.number("value", wanted.value);
  return std::move(out).line();
}

std::variant<Sample, std::string> parse_sample(std::string_view line) {
  if (line.starts_with(kYamlItem)) line.remove_prefix(kYamlItem.size());
  return guarded<Sample>(line, read_sample);
}

std::variant<WantedPoint, std::string> parse_wanted(std::string_view line) {
  return guarded<WantedPoint>(line, read_wanted);
}

std::size_t complete_size(std::string_view text) {
  const std::size_t last = text.rfind('\n');
  return last == std::string_view::npos ? 0 : last + 1;
}

SampleFile parse_samples(std::string_view text) {
  SampleFile file;
  text = text.substr(0, complete_size(text));
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    auto read = parse_sample(text.substr(0, end));
    if (auto* sample = std::get_if<Sample>(&read)) file.samples.push_back(std::move(*sample));
    if (auto* problem = std::get_if<std::string>(&read)) file.errors.push_back({line, std::move(*problem)});
    text.remove_prefix(end + 1);
  }
  return file;
}

}  // namespace stagecraft
