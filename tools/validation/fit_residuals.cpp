#include "tools/validation/fit_residuals.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "base/json.hpp"
#include "base/text.hpp"
#include "calibrate/fit/write_profile.hpp"

namespace stagecraft {
namespace {

// Three digits are more than the rows know, and make files that do not flicker.
double rounded(double value) {
  constexpr double kDigits = 1000;
  return std::round(value * kDigits) / kDigits;
}

// Values that a fit moved are analytic, with their story; the others keep theirs.
ResidualModel told(ResidualModel model, const ResidualModel& prior, const std::string& source) {
  const auto tell = [&](Sourced<double>& value, const Sourced<double>& before) {
    if (value.value == before.value) return;
    value = {.value = rounded(value.value), .provenance = Provenance::kAnalytic, .source = source};
  };
  for (std::size_t i = 0; i < kOpFamilyCount; ++i) tell(model.families[i], prior.families[i]);
  tell(model.run, prior.run);
  return model;
}

ResidualModel widened(ResidualModel model, double factor, const std::string& of) {
  const auto widen = [&](Sourced<double>& value) {
    value = {.value = rounded(value.value * factor),
             .provenance = Provenance::kAssumed,
             .source = fmt::format("no row was scored with this profile: {} times that of {}", factor, of)};
  };
  for (Sourced<double>& family : model.families) widen(family);
  widen(model.run);
  return model;
}

// Residuals that a set's rows are judged by, by profile.
using KnownResiduals = std::map<std::string, ResidualModel>;

std::vector<ExpectedError> errors_of(const std::vector<SetScore>& unnamed, WhatRan ran, const ScoreData& data,
                                     const KnownResiduals& known) {
  std::vector<ExpectedError> errors;
  for (const SetScore& score : unnamed) {
    const auto model = known.find(score.profile);
    if (model == known.end() || data.is_biased(score.name)) continue;
    const std::vector<ExpectedError> of_set = expected_errors(residual_rows(score, 0), ran, model->second);
    errors.insert(errors.end(), of_set.begin(), of_set.end());
  }
  return errors;
}

UnnamedSpread fit_spread(std::vector<ExpectedError> errors, const Sourced<double>& assumed) {
  UnnamedSpread spread{.rows = errors.size(), .named = coverage(errors), .unnamed = {}, .value = assumed};
  spread.value = {.value = fit_unnamed(errors, assumed.value),
                  .provenance = Provenance::kAnalytic,
                  .source = fmt::format(
                      "stagecraft calibrate residuals: 90 % interval score on {} rows without the names of "
                      "what ran",
                      errors.size())};
  for (ExpectedError& error : errors) error.sigma = std::hypot(error.sigma, spread.value.value);
  spread.unnamed = coverage(errors);
  return spread;
}

std::vector<ProfileResiduals> fit_profiles(const std::vector<SetScore>& scores, const ScoreData& data,
                                           const ResidualModel& assumed) {
  std::map<std::string, std::vector<ResidualRow>> by_profile;
  std::vector<ResidualRow> all;
  int source = 0;
  for (const SetScore& score : scores) {
    if (data.is_biased(score.name)) continue;
    for (const ResidualRow& row : residual_rows(score, source)) {
      by_profile[score.profile].push_back(row);
      all.push_back(row);
    }
    ++source;
  }
  const ResidualModel pooled = fit_residuals(all, assumed);
  std::vector<ProfileResiduals> out;
  KnownResiduals known;
  for (const auto& [profile, rows] : by_profile) {
    const std::string story = fmt::format(
        "stagecraft calibrate residuals: 90 % interval score on {} rows of this profile, prior the {} rows "
        "of all",
        rows.size(), all.size());
    const ResidualModel model = told(fit_residuals(rows, pooled), assumed, story);
    known[profile] = model;
    out.push_back({.profile = profile,
                   .rows = rows.size(),
                   .of = {},
                   .residuals = model,
                   .now = coverage(rows, model),
                   .left_out = coverage_left_out(rows, assumed)});
  }
  for (const Kin& kin : data.kin) {
    const auto of = known.find(kin.of);
    if (of == known.end() || known.contains(kin.profile)) continue;
    out.push_back({.profile = kin.profile,
                   .rows = 0,
                   .of = kin.of,
                   .residuals = widened(of->second, kin.wider, kin.of),
                   .now = {},
                   .left_out = {}});
  }
  return out;
}

}  // namespace

ResidualFit fit_residuals(const std::vector<SetScore>& scores, const std::vector<SetScore>& unnamed,
                          const ScoreData& data) {
  ResidualFit fit;
  ResidualModel assumed = assumed_residuals();
  constexpr std::array kUnnamed{WhatRan::kUnnamedPipeline, WhatRan::kUnnamed};
  constexpr int kRounds = 3;  // each fit is of the other's values
  for (int round = 0; round < kRounds; ++round) {
    fit.profiles = fit_profiles(scores, data, assumed);
    KnownResiduals known;
    for (const ProfileResiduals& profile : fit.profiles) known[profile.profile] = profile.residuals;
    for (std::size_t i = 0; i < kUnnamed.size(); ++i) {
      fit.spreads[i] = fit_spread(errors_of(unnamed, kUnnamed[i], data, known), assumed.unnamed[i]);
      assumed.unnamed[i] = fit.spreads[i].value;
    }
  }
  for (ProfileResiduals& profile : fit.profiles) profile.residuals.unnamed = assumed.unnamed;
  return fit;
}

std::string with_residuals(const std::string& profile_text, const ResidualModel& residuals) {
  const std::size_t start = profile_text.find("\nresiduals:");
  const std::string head = start == std::string::npos ? profile_text : profile_text.substr(0, start + 1);
  return head + residual_section(residuals);
}

std::string residuals_text(const ResidualFit& fit) {
  std::string out;
  for (const ProfileResiduals& profile : fit.profiles) {
    out += profile.rows > 0
               ? fmt::format("{}   {}: {} inside, median width {}; each set left out: {}, {}\n",
                             profile.profile, counted(static_cast<std::int64_t>(profile.rows), "row"),
                             percent(profile.now.share), percent(profile.now.median_width),
                             percent(profile.left_out.share), percent(profile.left_out.median_width))
               : fmt::format("{}   no rows, as {}\n", profile.profile, profile.of);
    TextTable table({Align::kLeft, Align::kRight, Align::kLeft});
    for (std::size_t i = 0; i < kOpFamilyCount; ++i) {
      const Sourced<double>& family = profile.residuals.families[i];
      table.row(
          {std::string(kOpFamilyNames[i]), percent(family.value), std::string(name(family.provenance))});
    }
    table.row(
        {"run", percent(profile.residuals.run.value), std::string(name(profile.residuals.run.provenance))});
    out += table.str(2);
  }
  const auto inside = [](const Coverage& coverage) {
    return fmt::format("{} inside, median width {}", percent(coverage.share), percent(coverage.median_width));
  };
  for (std::size_t i = 0; i < fit.spreads.size(); ++i) {
    const UnnamedSpread& spread = fit.spreads[i];
    out += fmt::format("{} {}   {} without the names of what ran: {}; without it {}\n", kUnnamedNames[i],
                       percent(spread.value.value), counted(static_cast<std::int64_t>(spread.rows), "row"),
                       inside(spread.unnamed), inside(spread.named));
  }
  return out;
}

std::string residuals_json(const ProfileResiduals& profile) {
  JsonWriter json;
  const auto write = [&json](std::string_view key, const Sourced<double>& share) {
    json.key(key).begin_object().field("value", share.value);
    json.field("provenance", name(share.provenance)).end_object();
  };
  const auto write_coverage = [&json](const char* key, const Coverage& coverage) {
    json.key(key).begin_object().field("coverage_90", coverage.share);
    json.field("median_width", coverage.median_width).end_object();
  };
  json.begin_object().field("schema", "stagecraft.residuals/1");
  json.field("profile", profile.profile).field("rows", profile.rows);
  if (profile.rows > 0) {
    write_coverage("now", profile.now);
    write_coverage("left_out", profile.left_out);
  } else {
    json.field("as", profile.of);
  }
  json.key("families").begin_object();
  for (std::size_t i = 0; i < kOpFamilyCount; ++i) write(kOpFamilyNames[i], profile.residuals.families[i]);
  json.end_object();
  write("run", profile.residuals.run);
  write("correlation", profile.residuals.correlation);
  for (std::size_t i = 0; i < kUnnamedNames.size(); ++i)
    write(kUnnamedNames[i], profile.residuals.unnamed[i]);
  return json.end_object().str();
}

}  // namespace stagecraft
