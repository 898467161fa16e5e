#include "sim/study/sweep_mistakes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario_tree.hpp"
#include "sim/study/base_facts.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kUnknown = "unknown-key";

// Codes of base/yaml.hpp for a value that is none of its kind, whatever else the scenario says.
bool says_unreadable(const std::string& code) {
  static constexpr std::array<std::string_view, 10> kCodes{
      "bad-boolean", "bad-number",         "bad-quantity", "negative-quantity", "no-unit",
      "no-value",    "quantity-too-large", "unknown-name", "unknown-unit",      "wrong-kind"};
  return std::ranges::find(kCodes, code) != kCodes.end();
}

// The axis that varies `path`, a part of it, or a mapping that contains it.
const SweepAxis* axis_of(const SweepSpec& spec, const std::string& path) {
  const auto within = [](const std::string& part, const std::string& whole) {
    return part == whole || part.starts_with(whole + ".");
  };
  for (const SweepAxis& axis : spec.axes)
    for (const std::string& varied : axis.paths)
      if (within(path, varied) || within(varied, path)) return &axis;
  return nullptr;
}

// That a point with these values would share with the others.
std::vector<Diagnostic> mistakes_at(const SweepSpec& spec, const std::vector<Assignment>& values,
                                    Library& library) {
  Diagnostics said;
  (void)load_scenario(spec.base, values, library, said);
  std::vector<Diagnostic> mistakes = said.sorted();
  std::erase_if(mistakes, [&](const Diagnostic& mistake) {
    const bool own = says_unreadable(mistake.code) && axis_of(spec, mistake.path) == nullptr;
    return mistake.severity != Severity::kError || (mistake.code != kUnknown && !own);
  });
  return mistakes;
}

}  // namespace

void report_shared_mistakes(const SweepSpec& spec, Library& library, Diagnostics& diagnostics) {
  std::vector<Assignment> first;
  for (const SweepAxis& axis : spec.axes) std::ranges::copy(value_of(axis, 0), std::back_inserter(first));
  std::vector<Diagnostic> shared = mistakes_at(spec, first, library);
  for (const SweepAxis& axis : spec.axes)
    for (std::size_t i = 1; !shared.empty() && i < std::min(value_count(axis), kMostTried); ++i) {
      std::vector<Assignment> values = first;
      std::ranges::copy(value_of(axis, i), std::back_inserter(values));  // over the first
      const std::vector<Diagnostic> here = mistakes_at(spec, values, library);
      std::erase_if(shared, [&](const Diagnostic& mistake) {
        return std::ranges::find(here, mistake.path, &Diagnostic::path) == here.end();
      });
    }
  for (Diagnostic& mistake : shared) {
    if (const SweepAxis* axis = axis_of(spec, mistake.path)) {
      mistake.where = axis->where;
      mistake.path.insert(0, "vary.");
    }
    mistake.message += mistake.code == kUnknown ? " of any point" : ", in every point";
    diagnostics.add(std::move(mistake));
  }
}

}  // namespace stagecraft
