#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "tools/tables/compare_table.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostExplained = 12;

// "tensor communication" of tensor_comm.
std::string part_name(Category part) {
  std::string name(kCategoryNames[static_cast<std::size_t>(part)]);
  constexpr std::string_view kComm = "_comm";
  if (name.ends_with(kComm)) name.replace(name.size() - kComm.size(), kComm.size(), " communication");
  return name;
}

std::string with_sign(Duration time) {
  return (time < Duration::zero() ? "-" : "+") + human(std::chrono::abs(time));
}

// "bubble -6.00 ms (100 %)": the share of the difference; without one where the whole is nothing.
std::string part_words(const std::string& name, Duration difference, Duration whole) {
  std::string words = fmt::format("{} {}", name, with_sign(difference));
  if (whole != Duration::zero())
    words += fmt::format(" ({:.0f} %)",
                         100 * static_cast<double>(difference.count()) / static_cast<double>(whole.count()));
  return words;
}

// Would it print as a share of the whole?
bool counts(Duration part, Duration whole) {
  return part != Duration::zero() && std::chrono::abs(part) * 200 >= std::chrono::abs(whole);
}

// Parts that are little of all that moved are summed up: beside large movements that leave little of each
// other, they may be much of the whole. Then shares of it say nothing, and are left out.
std::string parts_words(const std::vector<MovedPart>& parts, Duration whole) {
  Duration moved{}, rest{};
  for (const MovedPart& part : parts) moved += std::chrono::abs(part.difference());
  const bool shares = std::chrono::abs(whole) * 5 >= moved;
  const Duration shared = shares ? whole : Duration::zero();
  std::vector<std::string> words;
  for (const MovedPart& part : parts)
    if (counts(part.difference(), moved))
      words.push_back(part_words(part_name(part.part), part.difference(), shared));
    else
      rest += part.difference();
  if (counts(rest, whole)) words.push_back(part_words("the rest", rest, shared));
  return join(words, ", ");
}

std::string explanation(const Report& first, const Report& here, const std::string& first_name) {
  const std::vector<MovedPart> parts = moved_parts(first, here);
  const Duration whole = here.iteration_time - first.iteration_time;
  if (parts.empty()) return fmt::format("as long as {}, in every part", first_name);
  if (whole == Duration::zero())
    return fmt::format("as long as {}, but {}", first_name, parts_words(parts, whole));
  const char* relation = whole < Duration::zero() ? "shorter" : "longer";
  const std::string share =
      first.iteration_time > Duration::zero()
          ? " (" + percent(to_seconds(std::chrono::abs(whole)) / to_seconds(first.iteration_time)) + ")"
          : std::string();
  const std::string difference =
      fmt::format("{}{} {} than {}", human(std::chrono::abs(whole)), share, relation, first_name);
  // Parts of nothing are many times the whole.
  return share == " (" + percent(0) + ")" ? difference : difference + ": " + parts_words(parts, whole);
}

}  // namespace

std::vector<std::string> explanations(const Comparison& comparison) {
  const std::optional<Report>& first = comparison.outcomes.front().report;
  if (!first) return {};
  const VariantNames names(comparison);
  std::vector<std::string> lines;
  std::size_t left_out = 0;
  for (std::size_t i = 1; i < comparison.outcomes.size(); ++i) {
    const std::optional<Report>& here = comparison.outcomes[i].report;
    if (!here) continue;
    if (lines.size() == kMostExplained) {
      ++left_out;
      continue;
    }
    lines.push_back(names.spoken(i) + ": " + explanation(*first, *here, names.spoken(0)));
  }
  if (left_out > 0)
    lines.push_back(fmt::format("{} more: --format csv or json has the parts of all", left_out));
  return lines;
}

}  // namespace stagecraft
