#include "sim/scenario/failure_defaults.hpp"

#include <algorithm>

namespace stagecraft {

FailureDefaults::FailureDefaults(Library& library, Diagnostics& diagnostics,
                                 std::vector<AssumedInput>& assumed)
    : tree_(library.tree(library.data().root / "scenarios/failures/defaults.yaml", diagnostics)),
      diagnostics_(diagnostics),
      assumed_(assumed) {}

template <class Read>
auto FailureDefaults::read(const std::string& path, const char* name, Read read_value) {
  YamlMap root(tree_, "", {}, diagnostics_);
  YamlMap entry = root.map(name);
  if (tree_ == nullptr) return decltype(read_value(entry)){};  // already reported
  auto value = read_value(entry);
  const auto same = [&](const AssumedInput& input) { return input.path == path; };
  if (std::ranges::any_of(assumed_, same)) return value;
  const YamlNode* written = entry.get("value");
  const bool scalar = written != nullptr && written->kind == YamlNode::Kind::kScalar;
  assumed_.push_back({.path = path,
                      .value = scalar ? written->text : "a table",
                      .low = entry.text("low", ""),
                      .high = entry.text("high", ""),
                      .source = entry.text("source")});
  return value;
}

double FailureDefaults::number(const std::string& path, const char* name) {
  return read(path, name, [](YamlMap& entry) { return entry.number("value"); });
}

Duration FailureDefaults::duration(const std::string& path, const char* name) {
  return read(path, name, [](YamlMap& entry) { return entry.duration("value"); });
}

Bandwidth FailureDefaults::bandwidth(const std::string& path, const char* name) {
  return read(path, name, [](YamlMap& entry) { return entry.bandwidth("value"); });
}

std::string FailureDefaults::text(const std::string& path, const char* name) {
  return read(path, name, [](YamlMap& entry) { return entry.text("value"); });
}

std::vector<double> FailureDefaults::numbers(const std::string& path, const char* name) {
  return read(path, name, [](YamlMap& entry) { return entry.numbers("value"); });
}

const YamlNode* FailureDefaults::node(const std::string& path, const char* name) {
  return read(path, name, [](YamlMap& entry) { return entry.get("value"); });
}

double DefaultedMap::number(const char* key, Limits<double> limits, const char* name) {
  if (!map_.has(key)) return defaults_.number(map_.path_of(key), name == nullptr ? key : name);
  return map_.number(key, limits);
}

std::int64_t DefaultedMap::integer(const char* key, Limits<std::int64_t> limits, const char* name) {
  if (map_.has(key)) return map_.integer(key, limits);
  return static_cast<std::int64_t>(defaults_.number(map_.path_of(key), name == nullptr ? key : name));
}

Duration DefaultedMap::duration(const char* key, const char* name) {
  if (!map_.has(key)) return defaults_.duration(map_.path_of(key), name == nullptr ? key : name);
  return map_.duration(key);
}

Bandwidth DefaultedMap::bandwidth(const char* key, const char* name) {
  if (!map_.has(key)) return defaults_.bandwidth(map_.path_of(key), name == nullptr ? key : name);
  return map_.bandwidth(key);
}

}  // namespace stagecraft
