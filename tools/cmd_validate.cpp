#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "sim/simulate.hpp"
#include "tools/commands.hpp"
#include "tools/memory_scores.hpp"
#include "tools/published.hpp"
#include "tools/scenarios.hpp"

namespace stagecraft {
namespace {

struct Scored {
  std::string id;
  double predicted = 0, measured = 0;  // seconds per iteration
  [[nodiscard]] double error() const { return predicted / measured - 1; }
};

struct Skipped {
  std::string id, reason;
};

struct Scores {
  const PublishedSet* set = nullptr;
  std::vector<Scored> rows;
  std::vector<Skipped> skipped;

  [[nodiscard]] double mean_absolute() const {
    double sum = 0;
    for (const Scored& row : rows) sum += std::abs(row.error());
    return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
  }
  [[nodiscard]] double bias() const {
    double sum = 0;
    for (const Scored& row : rows) sum += row.error();
    return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
  }
  [[nodiscard]] double median_absolute() const {
    std::vector<double> errors;
    for (const Scored& row : rows) errors.push_back(std::abs(row.error()));
    std::sort(errors.begin(), errors.end());
    if (errors.empty()) return 0;
    const std::size_t half = errors.size() / 2;
    return errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
  }
  [[nodiscard]] const Scored* worst() const {
    const auto most = std::max_element(rows.begin(), rows.end(), [](const Scored& a, const Scored& b) {
      return std::abs(a.error()) < std::abs(b.error());
    });
    return most == rows.end() ? nullptr : &*most;
  }
};

std::string first_reason(const Diagnostics& diagnostics) {
  for (const Diagnostic& item : diagnostics.sorted()) {
    if (item.severity == Severity::kError) return fmt::format("{}: {}", item.path, item.message);
  }
  return "refused";
}

// Seconds per iteration as measured; throughput is inverted.
std::optional<double> measured_seconds(const PublishedRow& row, const Report& report) {
  if (row.iteration_seconds) return row.iteration_seconds;
  if (!row.tokens_per_s_per_gpu) return std::nullopt;
  return static_cast<double>(report.tokens) / (*row.tokens_per_s_per_gpu * report.gpus);
}

void score_row(const PublishedRow& row, const Session& session, Scores& scores) {
  if (!row.skip.empty()) {
    scores.skipped.push_back({row.id, row.skip});
    return;
  }
  Diagnostics diagnostics;
  const std::optional<Scenario> scenario = read_scenario(row.scenario, row.id, {}, session.data, diagnostics);
  if (!scenario || !prepare(*scenario, diagnostics)) {
    scores.skipped.push_back({row.id, first_reason(diagnostics)});
    return;
  }
  const Report report = simulate(*scenario);
  if (const auto measured = measured_seconds(row, report)) {
    scores.rows.push_back(
        {.id = row.id, .predicted = to_seconds(report.iteration_time), .measured = *measured});
  } else {
    scores.skipped.push_back({row.id, "no time was measured"});
  }
}

void print_text(const Scores& scores, Session& session, bool quiet) {
  session.out << fmt::format("{}   {}\n", scores.set->name, scores.set->title);
  if (!quiet) {
    TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
    table.row({"row", "predicted", "measured", "error"});
    for (const Scored& row : scores.rows) {
      table.row({row.id, fmt::format("{:.3f} s", row.predicted), fmt::format("{:.3f} s", row.measured),
                 fmt::format("{:+.1f} %", row.error() * 100)});
    }
    session.out << table.str(2);
    for (const Skipped& row : scores.skipped)
      session.out << fmt::format("  {} skipped: {}\n", row.id, row.reason);
  }
  if (const Scored* worst = scores.worst()) {
    session.out << fmt::format("  {} rows: MAPE {}, bias {:+.1f} %, median {}, worst {} ({:+.1f} %)\n",
                               scores.rows.size(), percent(scores.mean_absolute()), scores.bias() * 100,
                               percent(scores.median_absolute()), worst->id, worst->error() * 100);
  } else {
    session.out << "  no row could be scored\n";
  }
  if (!quiet && !scores.set->assumed.empty()) {
    session.out << "  the source does not print: " << join(scores.set->assumed, ", ") << '\n';
  }
  session.out << '\n';
}

void print_json(const Scores& scores, Session& session) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "stagecraft.validation/1")
      .field("set", std::string_view(scores.set->name));
  json.field("rows_scored", scores.rows.size())
      .field("mape", scores.mean_absolute())
      .field("bias", scores.bias());
  json.field("median", scores.median_absolute());
  json.field("worst", scores.worst() == nullptr ? 0.0 : std::abs(scores.worst()->error()))
      .key("rows")
      .begin_array();
  for (const Scored& row : scores.rows) {
    json.begin_object().field("id", std::string_view(row.id)).field("predicted_s", row.predicted);
    json.field("measured_s", row.measured).field("error", row.error()).end_object();
  }
  json.end_array().key("skipped").begin_array();
  for (const Skipped& row : scores.skipped) {
    json.begin_object()
        .field("id", std::string_view(row.id))
        .field("reason", std::string_view(row.reason))
        .end_object();
  }
  json.end_array().end_object();
  session.out << json.str() << '\n';
}

std::vector<std::filesystem::path> files_to_score(const Arguments& arguments, const Session& session) {
  std::vector<std::filesystem::path> files(arguments.words().begin(), arguments.words().end());
  if (!files.empty()) return files;
  const auto add = [&](const std::string& folder) {
    for (const std::string& name : session.data.names(folder)) {
      if (name != "clusters") files.push_back(session.data.root / folder / (name + ".yaml"));
    }
  };
  add("calibrate/validation");
  if (arguments.has("memory")) add("calibrate/validation/memory");
  return files;
}

double max_error(const Arguments& arguments) {
  const std::optional<std::string> given = arguments.text("max-error");
  if (!given) return HUGE_VAL;
  const std::optional<double> share = parse_number(*given);
  if (!share || *share < 0)
    throw UsageError(fmt::format("--max-error: '{}' is no share", *given), "0.05 means 5 %");
  return *share;
}

struct Call {
  const Arguments& arguments;
  Session& session;
};

// Memory in place of time. A wrong verdict passes no limit.
int score_memory_of(const PublishedSet& set, double limit, Call call) {
  const MemoryScores scores = score_memory(set, call.session.data);
  if (scores.rows.empty() && scores.skipped.empty()) return limit == HUGE_VAL ? kDone : kAnswerIsNo;
  if (call.arguments.has("json")) {
    print_memory_json(scores, call.session.out);
  } else {
    print_memory_text(scores, call.arguments.has("quiet"), call.session.out);
  }
  const bool within = scores.mean_absolute() <= limit && scores.wrong_verdicts() == 0;
  return limit == HUGE_VAL || within ? kDone : kAnswerIsNo;
}

// A set of which nothing could be scored passes no limit.
int score_file(const std::filesystem::path& file, const SetFabrics& fabrics, double limit, Call call) {
  Diagnostics diagnostics;
  const std::optional<PublishedSet> set = load_published(file, fabrics, diagnostics);
  const bool silent = set && (call.arguments.has("quiet") || call.arguments.has("json"));
  if (!silent) print_diagnostics(diagnostics.sorted(), call.arguments, call.session);
  if (!set) return kWrongInput;
  if (call.arguments.has("memory")) return score_memory_of(*set, limit, call);
  Scores scores{.set = &*set, .rows = {}, .skipped = {}};
  for (const PublishedRow& row : set->rows) score_row(row, call.session, scores);
  if (call.arguments.has("json")) {
    print_json(scores, call.session);
  } else {
    print_text(scores, call.session, call.arguments.has("quiet"));
  }
  const bool within = limit == HUGE_VAL || (!scores.rows.empty() && scores.mean_absolute() <= limit);
  return within ? kDone : kAnswerIsNo;
}

}  // namespace

int validate_command(const Arguments& arguments, Session& session) {
  const double limit = max_error(arguments);
  Diagnostics diagnostics;
  const SetFabrics fabrics =
      load_set_fabrics(session.data.root / "calibrate/validation/clusters.yaml", diagnostics);
  if (diagnostics.has_errors()) {
    print_diagnostics(diagnostics.sorted(), arguments, session);
    return kWrongInput;
  }
  int worst = kDone;
  for (const std::filesystem::path& file : files_to_score(arguments, session))
    worst = std::max<int>(worst, score_file(file, fabrics, limit, {arguments, session}));
  return worst;
}

}  // namespace stagecraft
