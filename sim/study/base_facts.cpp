#include "sim/study/base_facts.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "sim/goodput/random.hpp"

namespace stagecraft {
namespace {

// Adds every key with a value, by its dotted path; existing entries stay.
void flatten(const YamlNode& node, const std::string& path, Facts& facts) {
  if (!path.empty()) facts.emplace(path, fact_of(node));
  for (const YamlEntry& entry : node.entries)
    flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, facts);
}

// nullopt where it does not load.
std::optional<Facts> resolved_facts(const ScenarioTree& base, std::span<const Assignment> assignments,
                                    Library& library) {
  Diagnostics ignored;
  const auto scenario = load_scenario(base, assignments, library, ignored);
  const auto tree = scenario ? parse_yaml(to_yaml(*scenario), base.source, ignored) : std::nullopt;
  if (!tree) return std::nullopt;
  Facts facts;
  flatten(*tree, "", facts);
  // A default that the scenario leaves open (to_yaml), and a condition may ask for.
  if (!scenario->options.software.empty()) facts.emplace("options.software", scenario->options.software);
  if (scenario->cluster) facts.emplace(kGpusFact, static_cast<double>(scenario->cluster->gpu_count()));
  return facts;
}

}  // namespace

std::size_t value_count(const SweepAxis& axis) {
  return axis.range ? 2 : axis.choices.size();
}

std::vector<Assignment> value_of(const SweepAxis& axis, std::size_t index) {
  std::vector<Assignment> assignments;
  for (std::size_t slot = 0; slot < axis.paths.size(); ++slot) {
    assignments.push_back({axis.paths[slot], axis.range
                                                 ? yaml_scalar(axis.range->at(index == 0 ? 0 : 1), axis.where)
                                                 : axis.choices[index][slot]});
  }
  return assignments;
}

Fact fact_of(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kSequence && node.items.size() == 1) return fact_of(node.items.front());
  if (node.kind == YamlNode::Kind::kMap) {
    const YamlNode* name = node.find("name");
    return name != nullptr && name->kind == YamlNode::Kind::kScalar ? Fact(name->text) : Fact();
  }
  if (node.kind != YamlNode::Kind::kScalar) return {};
  if (node.quoted) return node.text;
  if (node.text == "true" || node.text == "false") return node.text == "true";
  if (const auto number = parse_number(node.text)) return *number;
  return node.text;
}

BaseFacts::BaseFacts(const SweepSpec& spec, Library& library) : spec_(spec), library_(library) {
  flatten(spec.base.root, "", written_);
  facts_ = resolved_facts(spec.base, {}, library).value_or(Facts());
  facts_.insert(written_.begin(), written_.end());
}

std::vector<std::string> BaseFacts::follows(const std::string& path) {
  if (written_.contains(path)) return {};
  if (!following_) try_all();
  if (const auto found = following_->find(path); found != following_->end()) return {found->second};
  if (!changing_) try_points();
  const auto point = changing_->find(path);
  return point == changing_->end() ? std::vector<std::string>() : together(path, point->second);
}

void BaseFacts::try_all() {
  following_.emplace();
  for (std::size_t a = 0; a < spec_.axes.size(); ++a) {
    const SweepAxis& axis = spec_.axes[a];
    const std::size_t count = value_count(axis), tried = std::min(count, kMostTried);
    for (std::size_t i = 0; i < tried; ++i) {
      const std::size_t index = tried > 1 ? i * (count - 1) / (tried - 1) : 0;
      const std::vector<Assignment> value = value_of(axis, index);
      const std::string varied = join(axis.paths, ", ");
      if (!notice(value, varied)) try_beside_others(a, value, varied);
    }
  }
}

// nullopt where it does not load.
std::optional<std::vector<std::string>> BaseFacts::changed_by(
    const std::vector<Assignment>& assignments) const {
  const std::optional<Facts> here = resolved_facts(spec_.base, assignments, library_);
  if (!here) return std::nullopt;
  std::vector<std::string> paths;
  for (const auto& [path, fact] : facts_) {
    const auto same = here->find(path);
    if (same == here->end() || same->second != fact) paths.push_back(path);
  }
  return paths;
}

// False where it does not load.
bool BaseFacts::notice(const std::vector<Assignment>& assignments, const std::string& varied) {
  const auto changed = changed_by(assignments);
  if (!changed) return false;
  for (const std::string& path : *changed) following_->emplace(path, varied);
  return true;
}

// The others all at their first, all at their last, then one by one at each of the first few.
void BaseFacts::try_beside_others(std::size_t axis, const std::vector<Assignment>& own,
                                  const std::string& varied) {
  constexpr std::size_t kFew = 8;
  const auto add = [&](std::vector<Assignment>& all, std::size_t other, std::size_t index) {
    std::ranges::copy(value_of(spec_.axes[other], index), std::back_inserter(all));
  };
  for (const bool last : {false, true}) {
    std::vector<Assignment> all = own;
    for (std::size_t other = 0; other < spec_.axes.size(); ++other)
      if (other != axis) add(all, other, last ? value_count(spec_.axes[other]) - 1 : 0);
    if (notice(all, varied)) return;
  }
  for (std::size_t other = 0; other < spec_.axes.size(); ++other)
    for (std::size_t i = 0; other != axis && i < std::min(value_count(spec_.axes[other]), kFew); ++i) {
      std::vector<Assignment> all = own;
      add(all, other, i);
      if (notice(all, varied)) return;
    }
}

// A default may follow from several varied keys and from none of them alone, as the software does from the node
// and the precision under ZeRO 3. Too many to try are drawn, not strided: a stride would meet some values never.
void BaseFacts::try_points() {
  changing_.emplace();
  std::uint64_t grid = 1;
  for (const SweepAxis& axis : spec_.axes) grid = std::min(grid * value_count(axis), kMostPointsTried + 1);
  const bool drawn = grid > kMostPointsTried;
  for (std::uint64_t number = 0; number < std::min(grid, kMostPointsTried); ++number) {
    const Point point = drawn ? drawn_point(number) : point_of_grid(number);
    for (const std::string& path : changed_by(values_of(point)).value_or(std::vector<std::string>()))
      changing_->emplace(path, point);
  }
}

BaseFacts::Point BaseFacts::point_of_grid(std::uint64_t number) const {
  Point point(spec_.axes.size());
  for (std::size_t a = point.size(); a-- > 0; number /= value_count(spec_.axes[a]))
    point[a] = static_cast<std::size_t>(number % value_count(spec_.axes[a]));
  return point;
}

// The same points each time.
BaseFacts::Point BaseFacts::drawn_point(std::uint64_t number) const {
  Point point;
  for (const SweepAxis& axis : spec_.axes) {
    const auto place = static_cast<std::uint32_t>(point.size());
    const auto draw = philox({static_cast<std::uint32_t>(number), place, 0, 0}, {0, 0});
    point.emplace_back(draw[0] % value_count(axis));
  }
  return point;
}

std::vector<Assignment> BaseFacts::values_of(const Point& point) const {
  std::vector<Assignment> all;
  for (std::size_t a = 0; a < point.size(); ++a)
    if (point[a]) std::ranges::copy(value_of(spec_.axes[a], *point[a]), std::back_inserter(all));
  return all;
}

// The varied paths that change a default at a point. A value without which it changes as well has no part in it.
std::vector<std::string> BaseFacts::together(const std::string& path, Point point) const {
  std::vector<std::string> deciding;
  for (std::size_t a = 0; a < point.size(); ++a) {
    const std::optional<std::size_t> own = std::exchange(point[a], std::nullopt);
    const auto changed = changed_by(values_of(point));
    if (changed && std::ranges::find(*changed, path) != changed->end()) continue;
    point[a] = own;
    deciding.push_back(join(spec_.axes[a].paths, ", "));
  }
  return deciding;
}

}  // namespace stagecraft
