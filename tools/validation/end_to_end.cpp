#include "tools/validation/end_to_end.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "sim/accuracy/constants.hpp"
#include "sim/simulate.hpp"
#include "tools/validation/render_parts.hpp"

namespace stagecraft {
namespace {

struct Measured {
  Scenario scenario;
  double seconds = 0;
  int source = 0;
};

struct ProfileRows {
  std::vector<Measured> rows;
  std::vector<std::string> sources;
  std::vector<std::size_t> counts;
};

// Held-out sets determine nothing, here as well.
bool determines_any(const std::string& set, const std::vector<FittedConstant>& constants) {
  return std::ranges::any_of(constants,
                             [&](const FittedConstant& constant) { return constant.is_fitted_on(set); });
}

// Scored once with constants as they are, which also says what is measured.
ProfileRows rows_of(const std::string& profile, const std::vector<FittedConstant>& constants,
                    const std::vector<PublishedSet>& sets, Library& library) {
  ProfileRows out;
  for (const PublishedSet& set : sets) {
    if (!determines_any(set.name, constants)) continue;
    const std::vector<LoadedRow> loaded = load_rows(set, library);
    const SetScore score = score_set(set, loaded);
    if (score.profile != profile || score.rows.empty()) continue;
    for (const LoadedRow& row : loaded) {
      const auto scored = std::ranges::find(score.rows, row.row->id, &ScoredRow::id);
      if (!row.scenario || scored == score.rows.end()) continue;
      out.rows.push_back({.scenario = *row.scenario,
                          .seconds = scored->measured,
                          .source = static_cast<int>(out.sources.size())});
    }
    out.sources.push_back(set.name);
    out.counts.push_back(score.rows.size());
  }
  return out;
}

// The value in the first row that the constant is fitted on: a site's term stands in one fabric alone.
double value_now(const FittedConstant& constant, const ProfileRows& rows) {
  const ModelConstant& known = *find_constant(constant.name);
  const auto is_fitted_on = [&](const Measured& row) {
    return constant.is_fitted_on(rows.sources[static_cast<std::size_t>(row.source)]);
  };
  const auto row = std::ranges::find_if(rows.rows, is_fitted_on);
  return known.get(row == rows.rows.end() ? rows.rows.front().scenario : row->scenario);
}

// The errors of rows with the constants set to given values. Those that still have their value of `as_is` are left
// alone: as they are they differ from fabric to fabric; those that a fit moves are one for all.
decltype(EndToEndProblem::log_errors) errors_with(const std::vector<FittedConstant>& constants,
                                                  const ProfileRows& rows, std::vector<double> as_is) {
  return [&constants, &rows, as_is = std::move(as_is)](const std::vector<double>& values,
                                                       const std::vector<std::size_t>& asked) {
    std::vector<double> errors;
    for (const std::size_t i : asked) {
      Scenario scenario = rows.rows[i].scenario;
      for (std::size_t c = 0; c < values.size(); ++c) {
        if (!as_is.empty() && values[c] == as_is[c]) continue;
        find_constant(constants[c].name)->set(scenario, values[c]);
      }
      errors.push_back(std::log(to_seconds(simulate(scenario).iteration_time) / rows.rows[i].seconds));
    }
    return errors;
  };
}

ProfileFit fit_constants_of(const std::string& profile, const std::vector<FittedConstant>& constants,
                            const ProfileRows& rows) {
  ProfileFit out{.profile = profile,
                 .constants = constants,
                 .before = {},
                 .sources = rows.sources,
                 .rows = rows.counts,
                 .fit = {},
                 .blind = {}};
  EndToEndProblem problem;
  for (const FittedConstant& constant : constants) {
    out.before.push_back(value_now(constant, rows));
    problem.constants.push_back(
        {.name = constant.name, .start = out.before.back(), .low = constant.low, .high = constant.high});
  }
  for (const Measured& row : rows.rows) problem.sources.push_back(row.source);
  problem.log_errors = errors_with(constants, rows, out.before);
  out.fit = fit_end_to_end(problem);
  if (rows.sources.size() < 2) return out;
  problem.log_errors = errors_with(constants, rows, {});
  for (std::size_t c = 0; c < constants.size(); ++c)
    problem.constants[c].start = constants[c].without.value_or((constants[c].low + constants[c].high) / 2);
  out.blind = fit_without_each(problem);
  return out;
}

// Mean error of the source at position `i`, fitted without it from the middles.
std::string blind_error(const ProfileFit& fit, std::size_t i) {
  return fit.blind.empty() ? "–" : percent(fit.blind[i].error);
}

std::string blind_ratio(const ProfileFit& fit, std::size_t i) {
  return fit.blind.empty() ? "–" : fmt::format("{:.2f}", fit.blind[i].error / fit.fit.sources[i].fitted);
}

bool on_bound(const FittedConstant& constant, double value) {
  constexpr double kClose = 1e-6;
  return value - constant.low < kClose || constant.high - value < kClose;
}

}  // namespace

std::vector<ProfileFit> fit_constants(const std::vector<PublishedSet>& sets, const ScoreData& data,
                                      Library& library) {
  std::vector<ProfileFit> fits;
  for (const auto& [profile, constants] : data.constants) {
    const ProfileRows rows = rows_of(profile, constants, sets, library);
    if (!rows.rows.empty()) fits.push_back(fit_constants_of(profile, constants, rows));
  }
  return fits;
}

std::string end_to_end_text(const std::vector<ProfileFit>& fits) {
  std::string out;
  for (const ProfileFit& fit : fits) {
    out += fit.profile + "\n";
    TextTable constants({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
    constants.row({"constant", "now", "fitted", "standard error", ""});
    for (std::size_t i = 0; i < fit.constants.size(); ++i)
      constants.row({fit.constants[i].name, fmt::format("{:.4g}", fit.before[i]),
                     fmt::format("{:.4g}", fit.fit.values[i]),
                     fmt::format("{:.2g}", fit.fit.standard_errors[i]),
                     on_bound(fit.constants[i], fit.fit.values[i]) ? "on its bound" : ""});
    TextTable sources({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                       Align::kRight, Align::kRight, Align::kRight});
    sources.row({"source", "rows", "now", "fitted", "left out", "/ fitted", "from the middles", "/ fitted"});
    for (const SourceErrors& source : fit.fit.sources) {
      const auto i = static_cast<std::size_t>(source.source);
      sources.row({fit.sources[i], std::to_string(fit.rows[i]), percent(source.before),
                   percent(source.fitted), percent(source.left_out),
                   fmt::format("{:.2f}", source.left_out / source.fitted), blind_error(fit, i),
                   blind_ratio(fit, i)});
    }
    out +=
        constants.str(2) + "\n" + sources.str(2) + fmt::format("  {} iterations simulated\n\n", fit.fit.runs);
  }
  return out;
}

std::string end_to_end_page(const std::vector<ProfileFit>& fits) {
  std::string constants = markdown_head({"profile", "constant", "in use", "fitted again", "± ", "plausible"});
  std::string sources =
      markdown_head({"left out", "profile", "rows", "MAPE in use", "fitted on all", "left out",
                     "left out / fitted", "left out, from the middles", "that / fitted"});
  for (const ProfileFit& fit : fits) {
    for (std::size_t i = 0; i < fit.constants.size(); ++i) {
      const FittedConstant& constant = fit.constants[i];
      constants += markdown_row({fit.profile, constant.name, fmt::format("{:.4g}", fit.before[i]),
                                 fmt::format("{:.4g}{}", fit.fit.values[i],
                                             on_bound(constant, fit.fit.values[i]) ? " (bound)" : ""),
                                 fmt::format("{:.2g}", fit.fit.standard_errors[i]),
                                 fmt::format("{:g} to {:g}", constant.low, constant.high)});
    }
    for (const SourceErrors& source : fit.fit.sources) {
      const auto i = static_cast<std::size_t>(source.source);
      sources += markdown_row({fit.sources[i], fit.profile, std::to_string(fit.rows[i]),
                               percent(source.before), percent(source.fitted), percent(source.left_out),
                               fmt::format("{:.2f}", source.left_out / source.fitted), blind_error(fit, i),
                               blind_ratio(fit, i)});
    }
  }
  return "\n## Sources left out\n\nThe constants that were fitted on whole iterations, fitted again on all "
         "rows of the sources that determined them (each of equal weight, within their\nplausible range), "
         "then on the rows of all the others: what to expect of a source never seen. Held-out sources take "
         "no part. A constant that only one source knows (its\nsite, its attention kernel) falls back on its "
         "start when that source is left out. `left out` starts from the constants in use, which have\nseen "
         "the rows that are left out: it is kind. `from the middles` starts in the middle of each plausible "
         "range, and of a site from what\na fabric has of which nothing is known, and no step of it has seen "
         "the source; one value then serves all fabrics.\n\n" +
         sources + "\n" + constants;
}

std::string end_to_end_json(const ProfileFit& fit) {
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.end-to-end-fit/1");
  json.field("profile", fit.profile).key("constants").begin_array();
  for (std::size_t i = 0; i < fit.constants.size(); ++i) {
    json.begin_object().field("name", fit.constants[i].name).field("now", fit.before[i]);
    json.field("fitted", fit.fit.values[i]).field("standard_error", fit.fit.standard_errors[i]);
    json.field("on_bound", on_bound(fit.constants[i], fit.fit.values[i])).end_object();
  }
  json.end_array().key("sources").begin_array();
  for (const SourceErrors& source : fit.fit.sources) {
    const auto i = static_cast<std::size_t>(source.source);
    json.begin_object().field("set", fit.sources[i]).field("rows", fit.rows[i]);
    json.field("mape", source.before).field("mape_fitted", source.fitted);
    json.field("mape_left_out", source.left_out);
    if (!fit.blind.empty()) json.field("mape_left_out_from_middles", fit.blind[i].error);
    json.end_object();
  }
  json.end_array().end_object();
  return json.str();
}

}  // namespace stagecraft
