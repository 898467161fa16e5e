#include "sim/report/goodput_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

struct Point {
  double rate = 0, value = 0;
};

// One policy's points, by rate.
struct Line {
  std::string policy;
  std::vector<Point> points;
};

// In the order in which policies first appear.
std::vector<Line> lines_of(std::span<const GoodputRow> rows) {
  std::vector<Line> lines;
  for (const GoodputRow& row : rows) {
    auto line = std::ranges::find(lines, row.policy, &Line::policy);
    if (line == lines.end()) line = lines.insert(line, {.policy = row.policy, .points = {}});
    line->points.push_back({.rate = row.rate, .value = row.samples_per_s});
  }
  for (Line& line : lines) std::ranges::stable_sort(line.points, {}, &Point::rate);
  return lines;
}

// Position of `rate` between `from` and `to`, 0 to 1; logarithmic where both are positive.
double way(double from, double to, double rate) {
  if (to <= from) return 0;
  if (from <= 0) return (rate - from) / (to - from);
  return std::log(rate / from) / std::log(to / from);
}

double rate_at(double from, double to, double t) {
  return from <= 0 ? from + t * (to - from) : from * std::exp(t * std::log(to / from));
}

// The value at a rate between the first and the last of the line's.
std::optional<double> value_at(const Line& line, double rate) {
  const std::vector<Point>& points = line.points;
  if (points.empty() || rate < points.front().rate || rate > points.back().rate) return std::nullopt;
  const auto after = std::upper_bound(points.begin(), points.end(), rate,
                                      [](double r, const Point& point) { return r < point.rate; });
  if (after == points.end()) return points.back().value;
  const Point &a = *std::prev(after), &b = *after;
  return a.value + way(a.rate, b.rate, rate) * (b.value - a.value);
}

struct RatePair {
  double rate = 0, first = 0, second = 0;
  [[nodiscard]] double difference() const { return first - second; }
};

std::vector<RatePair> common_rates(const Line& a, const Line& b) {
  std::vector<RatePair> pairs;
  for (const Point& point : a.points)
    for (const Point& other : b.points)
      if (point.rate == other.rate)
        pairs.push_back({.rate = point.rate, .first = point.value, .second = other.value});
  return pairs;
}

bool is_ahead_of_all(const std::vector<Line>& lines, const GoodputCrossing& crossing) {
  constexpr double kEqual = 1e-9;  // relative tolerance for the rounding of interpolation
  return std::ranges::none_of(lines, [&](const Line& line) {
    if (line.policy == crossing.before || line.policy == crossing.after) return false;
    const std::optional<double> value = value_at(line, crossing.rate);
    return value && *value > crossing.samples_per_s * (1 + kEqual);
  });
}

// Adds the rates at which the sign of the difference changes. A rate at which two policies are equal belongs
// to the interval after it.
void add_crossings(const Line& a, const Line& b, std::vector<GoodputCrossing>& crossings) {
  std::optional<RatePair> last;   // with a difference
  std::optional<RatePair> equal;  // the first after it without
  for (const RatePair& pair : common_rates(a, b)) {
    if (pair.difference() == 0) {
      if (last && !equal) equal = pair;
      continue;
    }
    if (last && (last->difference() > 0) != (pair.difference() > 0)) {
      const double t = last->difference() / (last->difference() - pair.difference());
      const RatePair between{.rate = rate_at(last->rate, pair.rate, t),
                             .first = last->first + t * (pair.first - last->first)};
      const RatePair& at = equal ? *equal : between;
      const bool a_first = last->difference() > 0;
      crossings.push_back({.rate = at.rate,
                           .before = a_first ? a.policy : b.policy,
                           .after = a_first ? b.policy : a.policy,
                           .samples_per_s = at.first});
    }
    last = pair;
    equal.reset();
  }
}

}  // namespace

std::vector<GoodputCrossing> crossings_of(std::span<const GoodputRow> rows) {
  const std::vector<Line> lines = lines_of(rows);
  std::vector<GoodputCrossing> crossings;
  for (std::size_t a = 0; a < lines.size(); ++a)
    for (std::size_t b = a + 1; b < lines.size(); ++b) add_crossings(lines[a], lines[b], crossings);
  for (GoodputCrossing& crossing : crossings) crossing.leads = is_ahead_of_all(lines, crossing);
  std::ranges::sort(crossings, [](const GoodputCrossing& a, const GoodputCrossing& b) {
    return std::tie(a.rate, a.before, a.after) < std::tie(b.rate, b.before, b.after);
  });
  return crossings;
}

namespace {

constexpr const char* kShareTitle = "share of the throughput without failures";

// Axes of both pictures: rates from left to right, fractions of the ideal from the bottom up.
struct Axes {
  double first_rate = 0, last_rate = 0;
  double ideal = 1;
  double lowest = 0;  // share at the lower edge, a multiple of a fifth

  // 0 at the left, 1 at the right; below, 0 at the lower edge, 1 at the ideal.
  [[nodiscard]] double across(double rate) const { return way(first_rate, last_rate, rate); }
  [[nodiscard]] double rate(double across) const { return rate_at(first_rate, last_rate, across); }
  [[nodiscard]] double up(double samples_per_s) const {
    return (samples_per_s / ideal - lowest) / (1 - lowest);
  }
};

Axes axes_of(const std::vector<Line>& lines, double ideal) {
  SC_CHECK(!lines.empty(), "a chart shows something");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Axes axes{.first_rate = kInfinity, .last_rate = -kInfinity};
  double least = kInfinity, most = 0;
  for (const Line& line : lines)
    for (const Point& point : line.points) {
      axes.first_rate = std::min(axes.first_rate, point.rate);
      axes.last_rate = std::max(axes.last_rate, point.rate);
      least = std::min(least, point.value);
      most = std::max(most, point.value);
    }
  axes.ideal = std::max({ideal, most, std::numeric_limits<double>::min()});
  axes.lowest = std::clamp(std::floor(least / axes.ideal * 5) / 5, 0.0, 0.8);
  return axes;
}

std::vector<double> rates_of(const std::vector<Line>& lines) {
  std::vector<double> rates;
  for (const Line& line : lines)
    for (const Point& point : line.points) rates.push_back(point.rate);
  std::ranges::sort(rates);
  rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
  return rates;
}

char letter_of(std::size_t line) {
  return static_cast<char>('A' + line % 26);
}

// The leading policy is drawn last, so that its letter stays visible.
std::vector<std::string> cells_of(const std::vector<Line>& lines, const Axes& axes, int width, int height) {
  std::vector<std::string> cells(static_cast<std::size_t>(height),
                                 std::string(static_cast<std::size_t>(width), ' '));
  for (int column = 0; column < width; ++column) {
    const double t = width > 1 ? static_cast<double>(column) / (width - 1) : 0;
    std::vector<std::pair<double, char>> here;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      // The last column's rate, rounded, could pass the last point.
      const double rate = column == width - 1 ? axes.last_rate : axes.rate(t);
      if (const std::optional<double> value = value_at(lines[i], rate))
        here.emplace_back(*value, letter_of(i));
    }
    std::ranges::stable_sort(here, [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [value, letter] : here) {
      const double up = std::clamp(axes.up(value), 0.0, 1.0);
      const auto row = static_cast<std::size_t>(std::lround((1 - up) * (height - 1)));
      cells[row][static_cast<std::size_t>(column)] = letter;
    }
  }
  return cells;
}

// The rates below the axis, each centred under its column where there is room.
std::string rate_labels(const std::vector<Line>& lines, const Axes& axes, int width) {
  std::string labels(static_cast<std::size_t>(width) + 8, ' ');
  std::size_t free_from = 0;
  for (const double rate : rates_of(lines)) {
    const std::string text = fmt::format("{:.3g}", rate);
    const auto column = static_cast<std::size_t>(std::lround(axes.across(rate) * (width - 1)));
    const std::size_t start = column - std::min(column, text.size() / 2);
    if (start < free_from || start + text.size() > labels.size()) continue;
    labels.replace(start, text.size(), text);
    free_from = start + text.size() + 2;
  }
  labels.erase(labels.find_last_not_of(' ') + 1);
  return labels;
}

std::string crossing_text(const GoodputCrossing& crossing) {
  return fmt::format("{} behind {} from {:.3g} on", crossing.before, crossing.after, crossing.rate);
}

}  // namespace

std::string chart_text(std::span<const GoodputRow> rows, const GoodputChartOptions& options) {
  const std::vector<Line> lines = lines_of(rows);
  if (lines.empty()) return "";
  SC_CHECK(options.width >= 2 && options.height >= 2, "a chart has room for its corners");
  const Axes axes = axes_of(lines, options.ideal_samples_per_s);
  const std::vector<std::string> cells = cells_of(lines, axes, options.width, options.height);
  std::string out = options.title.empty() ? "" : options.title + "\n";
  out += fmt::format("{}\n", kShareTitle);
  for (std::size_t row = 0; row < cells.size(); ++row) {
    const double share =
        1 - (1 - axes.lowest) * static_cast<double>(row) / static_cast<double>(cells.size() - 1);
    const bool labelled = row % 5 == 0 || row + 1 == cells.size();
    std::string line = labelled ? fmt::format("{:>5.0f} % |", share * 100) : std::string(8, ' ') + "|";
    line += cells[row];
    out += line.erase(line.find_last_not_of(' ') + 1) + "\n";
  }
  out += std::string(8, ' ') + "+" + std::string(static_cast<std::size_t>(options.width), '-') + "\n";
  out += std::string(9, ' ') + rate_labels(lines, axes, options.width) + "   " + options.rate_name + "\n";
  for (std::size_t i = 0; i < lines.size(); ++i)
    out += fmt::format("{}{} {}", i % 3 == 0 ? "         " : "   ", letter_of(i),
                       i % 3 == 2 || i + 1 == lines.size() ? lines[i].policy + "\n"
                                                           : fmt::format("{:<18}", lines[i].policy));
  for (const GoodputCrossing& crossing : crossings_of(rows))
    if (crossing.leads) out += "         " + crossing_text(crossing) + "\n";
  return out;
}

namespace {

// Colours that people with any colour vision can tell apart (Okabe and Ito, "Color Universal Design", 2008),
// without their yellow, which white swallows.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#56b4e9", "#e69f00", "#000000", "#7f7f7f"};
constexpr double kLeft = 64, kTop = 48, kPlotWidth = 520, kPlotHeight = 320, kRight = 176, kBottom = 56;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

double x_of(const Axes& axes, double rate) {
  return kLeft + axes.across(rate) * kPlotWidth;
}
double y_of(const Axes& axes, double samples_per_s) {
  return kTop + (1 - axes.up(samples_per_s)) * kPlotHeight;
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(text));
}

std::string svg_frame(const std::vector<Line>& lines, const Axes& axes, const GoodputChartOptions& options) {
  std::string out;
  const int steps = static_cast<int>(std::lround((1 - axes.lowest) * 10));
  for (int i = 0; i <= steps; ++i) {
    const double share = 1 - 0.1 * i;
    const double y = y_of(axes, share * axes.ideal);
    out += fmt::format("<path d=\"M{:.1f} {:.1f}h{:.1f}\" stroke=\"#dddddd\"/>\n", kLeft, y, kPlotWidth);
    out += text_at(kLeft - 8, y + 4, "end", fmt::format("{:.0f} %", share * 100));
  }
  for (const double rate : rates_of(lines)) {
    const double x = x_of(axes, rate);
    out += fmt::format("<path d=\"M{:.1f} {:.1f}v6\" stroke=\"#666666\"/>\n", x, kTop + kPlotHeight);
    out += text_at(x, kTop + kPlotHeight + 20, "middle", fmt::format("{:.3g}", rate));
  }
  out += fmt::format("<path d=\"M{:.1f} {:.1f}v{:.1f}h{:.1f}\" fill=\"none\" stroke=\"#666666\"/>\n", kLeft,
                     kTop, kPlotHeight, kPlotWidth);
  out += text_at(kLeft + kPlotWidth / 2, kTop + kPlotHeight + 42, "middle", options.rate_name);
  out += text_at(kLeft, 24, "start", options.title);
  return out + text_at(kLeft, 40, "start", kShareTitle);
}

// Names stand at the right ends, moved apart where they would lie on each other.
std::vector<double> name_places(const std::vector<Line>& lines, const Axes& axes) {
  constexpr double kApart = 16;
  std::vector<std::size_t> order(lines.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto end_of = [&](std::size_t i) { return y_of(axes, lines[i].points.back().value); };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return end_of(a) < end_of(b); });
  std::vector<double> places(lines.size());
  double free_from = 0;
  for (const std::size_t i : order) {
    places[i] = std::max(end_of(i), free_from);
    free_from = places[i] + kApart;
  }
  // Pushed out at the bottom, they move up together from there.
  double free_to = kTop + kPlotHeight;
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    places[*i] = std::min(places[*i], free_to);
    free_to = places[*i] - kApart;
  }
  return places;
}

std::string svg_lines(const std::vector<Line>& lines, const Axes& axes) {
  const std::vector<double> names = name_places(lines, axes);
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    std::string path;
    for (const Point& point : lines[i].points)
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_of(axes, point.rate),
                          y_of(axes, point.value));
    const char* dashes = i >= std::size(kColours) ? " stroke-dasharray=\"6 3\"" : "";
    out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", path, colour,
                       dashes);
    for (const Point& point : lines[i].points)
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n",
                         x_of(axes, point.rate), y_of(axes, point.value), colour);
    out += fmt::format("<g fill=\"{}\">{}</g>\n", colour,
                       text_at(kLeft + kPlotWidth + 12, names[i] + 4, "start", lines[i].policy));
  }
  return out;
}

}  // namespace

std::string chart_svg(std::span<const GoodputRow> rows, const GoodputChartOptions& options) {
  const std::vector<Line> lines = lines_of(rows);
  if (lines.empty()) return "";
  const Axes axes = axes_of(lines, options.ideal_samples_per_s);
  const double width = kLeft + kPlotWidth + kRight, height = kTop + kPlotHeight + kBottom;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#222222\">\n"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n",
      width, height);
  out += svg_frame(lines, axes, options) + svg_lines(lines, axes);
  for (const GoodputCrossing& crossing : crossings_of(rows)) {
    if (!crossing.leads) continue;
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6\" fill=\"none\" stroke=\"#222222\"><title>{}</title>"
        "</circle>\n",
        x_of(axes, crossing.rate), y_of(axes, crossing.samples_per_s), escaped(crossing_text(crossing)));
  }
  return out + "</svg>\n";
}

}  // namespace stagecraft
