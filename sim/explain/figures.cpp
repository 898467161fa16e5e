#include "sim/explain/figures.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "base/json_reader.hpp"

namespace stagecraft {
namespace {

// The unit is in the key: _s, _bytes, _per_s.
Amount amount_of(std::string_view key, const std::string& text) {
  const std::optional<double> number = parse_number(text);
  SC_CHECK(number.has_value(), "a bare scalar of a result is a number");
  const auto ends = [&](std::string_view end) { return key.ends_with(end); };
  if (ends("_bytes_per_s")) return Bandwidth(*number);
  if (ends("_per_s") || ends("_per_s_per_gpu")) return Amount::per_second(*number);
  if (ends("_tflops_per_gpu")) return Amount::tera_flop_rate(*number);
  if (ends("_s")) return *number < 0 ? Amount(-from_seconds(-*number)) : Amount(from_seconds(*number));
  const bool whole = std::floor(*number) == *number && std::abs(*number) < 9e15 &&
                     text.find_first_of(".eE") == std::string::npos;
  if (ends("bytes") && whole) return Bytes(static_cast<std::int64_t>(*number));
  static constexpr std::string_view kCounts[] = {
      "gpus", "tasks", "simulated_ranks", "count", "stage", "peak_stage", "in_flight", "alike", "iterations"};
  if (whole && std::ranges::find(kCounts, key) != std::end(kCounts))
    return Amount::count(static_cast<std::int64_t>(*number));
  return Amount::number(*number);
}

void collect(const YamlNode& node, const std::string& path, std::string_view key,
             std::vector<Figure>& figures) {
  const std::string before = path.empty() ? path : path + ".";
  for (const YamlEntry& entry : node.entries) {
    // The parts of the breakdown are named without a unit: that of the whole counts.
    const std::string_view name = key == "breakdown_s" ? key : std::string_view(entry.key);
    collect(entry.value, before + entry.key, name, figures);
  }
  for (std::size_t i = 0; i < node.items.size(); ++i)
    collect(node.items[i], before + std::to_string(i), key == "interval_90_s" ? key : "", figures);
  const bool number =
      node.kind == YamlNode::Kind::kScalar && !node.quoted && node.text != "true" && node.text != "false";
  if (number) figures.push_back({.path = path, .value = amount_of(key, node.text)});
}

}  // namespace

std::vector<Figure> figures_of(const Report& report) {
  Diagnostics diagnostics;
  const std::optional<YamlNode> document = parse_json(render_json(report), "result", diagnostics);
  SC_CHECK(document.has_value(), "a result is JSON");
  std::vector<Figure> figures;
  collect(*document, "", "", figures);
  return figures;
}

std::vector<Figure> figures_at(std::span<const Figure> figures, std::string_view path) {
  std::vector<Figure> found;
  const std::string part = std::string(path) + ".";
  for (const Figure& figure : figures)
    if (figure.path == path || figure.path.starts_with(part)) found.push_back(figure);
  return found;
}

std::optional<Figure> figure_at(std::span<const Figure> figures, std::string_view path) {
  const auto found = std::ranges::find(figures, path, &Figure::path);
  return found == figures.end() ? std::nullopt : std::optional(*found);
}

}  // namespace stagecraft
