// validate: every published row predicted, and what the errors of a set say.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "tools/command_line/document_origin.hpp"
#include "tools/command_line/interrupt.hpp"
#include "tools/command_line/ordered_answers.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/page_files.hpp"
#include "tools/validation/ablation.hpp"
#include "tools/validation/end_to_end.hpp"
#include "tools/validation/kind_table.hpp"
#include "tools/validation/memory_scores.hpp"
#include "tools/validation/pooled_scores.hpp"
#include "tools/validation/published.hpp"
#include "tools/validation/published_sets.hpp"
#include "tools/validation/render.hpp"
#include "tools/validation/score.hpp"
#include "tools/validation/score_data.hpp"

namespace stagecraft {
namespace {

std::vector<std::filesystem::path> files_to_score(const Arguments& arguments, const Session& session) {
  std::vector<std::filesystem::path> files(arguments.words().begin(), arguments.words().end());
  if (!files.empty()) return files;
  files = published_files(session.data);
  if (!arguments.has("memory")) return files;
  const auto more = published_memory_files(session.data);
  files.insert(files.end(), more.begin(), more.end());
  return files;
}

std::optional<double> max_error(const Arguments& arguments) {
  const std::optional<std::string> given = arguments.text("max-error");
  if (!given) return std::nullopt;
  const std::optional<double> share = parse_number(*given);
  if (!share || *share < 0)
    throw UsageError(fmt::format("--max-error: '{}' is no share", *given), "0.05 means 5 %");
  return share;
}

// What one call of the command asks for, and what all its sets are scored with.
struct Call {
  const Arguments& arguments;
  const std::vector<KnownSource>& sources;
  const ScoreData& data;
  std::optional<double> limit;  // of a set's mean error
  bool pages = false;           // --markdown: of all sets together, when they are scored
  bool brief = false;           // a line for each set, then as well
  RenderOptions render;
};

// Is the mean error of a set within the limit? Reports on standard error if not.
bool within_limit(const PublishedSet& set, double mean, const Call& call, Session& session) {
  if (!call.limit || mean <= *call.limit) return true;
  session.err << fmt::format("{}: mean error {:.3g} % is above {:g} %\n", set.name, 100 * mean,
                             100 * *call.limit);
  return false;
}

// The answer for a set of which nothing could be scored, which passes no limit. Of all sets many have no
// memory figures; of one that somebody names it is said.
int answer_of_none(const PublishedSet& set, const Call& call, Session& session) {
  if (!call.limit && call.arguments.words().empty()) return kDone;
  session.err << fmt::format("{}: nothing could be scored\n", set.name);
  return call.limit ? kAnswerIsNo : kDone;
}

// Memory in place of time. A wrong verdict passes no limit.
int score_memory_of(const PublishedSet& set, Library& library, const Call& call, Session& session) {
  const MemoryScores scores = score_memory(set, library);
  if (scores.rows.empty() && scores.skipped.empty()) return answer_of_none(set, call, session);
  if (call.arguments.has("json")) {
    session.out << with_origin(memory_json(scores), scores.profile_hashes) << '\n';
  } else {
    print_memory_text(scores, call.arguments.has("quiet"), session.out);
  }
  if (!call.limit) return kDone;
  const int wrong = scores.wrong_verdicts();
  if (wrong > 0) session.err << fmt::format("{}: {}\n", set.name, counted(wrong, "wrong verdict"));
  return within_limit(set, scores.summary().mean_absolute, call, session) && wrong == 0 ? kDone : kAnswerIsNo;
}

int score_time_of(const PublishedSet& set, Library& library, const Call& call, Session& session,
                  std::optional<SetScore>& scored) {
  const SetScore& score = scored.emplace(
      score_set(set, load_rows(set, library), {.causes = call.pages || call.render.attribute}));
  if (call.arguments.has("json")) {
    session.out << with_origin(set_json(score, call.data, call.render), score.profile_hashes) << '\n';
  } else if (!call.pages && !call.brief) {
    print_set_text(score, call.data, call.render, session.out);
  }
  if (score.rows.empty()) return answer_of_none(set, call, session);
  return within_limit(set, score.summary().mean_absolute, call, session) ? kDone : kAnswerIsNo;
}

std::optional<PublishedSet> load_set(const std::filesystem::path& file, const Call& call, Session& session) {
  Diagnostics diagnostics;
  std::optional<PublishedSet> set = load_published(file, call.sources, diagnostics);
  const bool silent = set && (call.arguments.has("json") || call.arguments.has("markdown"));
  if (!silent) print_diagnostics(diagnostics.sorted(), call.arguments, session);
  return set;
}

void print_all(const std::vector<SetScore>& scores, const Call& call, Session& session) {
  if (call.pages) {
    session.out << validation_page(scores, call.data);
    return;
  }
  if (call.brief) print_sets_text(scores, call.data, session.out);
  const bool several = std::ranges::count_if(scores, [](const SetScore& s) { return !s.rows.empty(); }) > 1;
  if (!several) return;
  const PooledIntervals pooled = pool_intervals(scores);
  const ErrorsByFit errors = errors_by_fit(scores, call.data);
  const std::vector<KindScore> kinds = scores_by_kind(scores, call.data);
  if (!call.arguments.has("json")) {
    if (!kinds.empty()) session.out << kind_table_text(kinds) << '\n';
    return print_pooled_text(pooled, errors, session.out);
  }
  std::vector<std::string> profiles;
  for (const SetScore& set : scores)
    profiles.insert(profiles.end(), set.profile_hashes.begin(), set.profile_hashes.end());
  session.out << with_origin(pooled_json(pooled, errors, kinds), profiles) << '\n';
}

int score_files(const Call& call, Session& session) {
  const std::vector<std::filesystem::path> files = files_to_score(call.arguments, session);
  std::vector<std::optional<SetScore>> scored(files.size());
  const auto score = [&](std::size_t i, Library& library, Session& own) -> int {
    const std::optional<PublishedSet> set = load_set(files[i], call, own);
    if (!set) return kWrongInput;
    return call.arguments.has("memory") ? score_memory_of(*set, library, call, own)
                                        : score_time_of(*set, library, call, own, scored[i]);
  };
  const OrderedAnswers answers{
      .count = files.size(), .noun = "sets", .make_ask = [&]() -> OrderedAnswers::Ask {
        return [&, library = std::make_shared<Library>(session.data)](std::size_t i, Session& own) {
          return score(i, *library, own);
        };
      }};
  const int worst = answers.print(call.arguments, session);
  if (worst >= kBySignal) return worst;
  std::vector<SetScore> scores;
  for (std::optional<SetScore>& set : scored)
    if (set) scores.push_back(*std::move(set));
  print_all(scores, call, session);
  if (call.arguments.has("html")) write_page(call.arguments, scores);
  return worst;
}

// With --quiet of several sets: unless something is asked for that has more than a line to say of each.
bool is_brief(const Arguments& arguments, const Session& session) {
  if (!arguments.has("quiet") || arguments.has("json") || arguments.has("attribute")) return false;
  return files_to_score(arguments, session).size() > 1;
}

// The tables that simulate every row many times.
int print_studies(const Call& call, Session& session) {
  Library library(session.data);
  std::vector<PublishedSet> sets;
  for (const std::filesystem::path& file : files_to_score(call.arguments, session)) {
    std::optional<PublishedSet> set = load_set(file, call, session);
    if (!set) return kWrongInput;
    sets.push_back(*std::move(set));
  }
  if (call.arguments.has("ablation"))
    session.out << ablation_page(ablate(sets, call.data, library), call.data);
  if (!call.arguments.has("leave-out")) return kDone;
  const std::vector<ProfileFit> fits = fit_constants(sets, call.data, library);
  if (fits.empty())
    session.err << "nothing to leave out: no constant was fitted on these sets "
                   "(calibrate/validation/scoring/constants.yaml)\n";
  if (!call.arguments.has("json")) {
    session.out << (call.pages ? end_to_end_page(fits) : end_to_end_text(fits));
    return kDone;
  }
  for (const ProfileFit& fit : fits) session.out << end_to_end_json(fit) << '\n';
  return kDone;
}

// Pairs of options of which one would be left out in silence.
void refuse_contradictions(const Arguments& arguments) {
  const auto both = [&](const char* one, const char* other) {
    return arguments.has(one) && arguments.has(other);
  };
  refuse_two_forms(arguments);
  if (both("ablation", "json"))
    throw UsageError("--ablation is a table in Markdown and has no JSON", "leave --json out");
  for (const char* const of_time : {"markdown", "attribute", "ablation", "leave-out"})
    if (both("memory", of_time))
      throw UsageError(fmt::format("--{} is about predicted times, not --memory", of_time),
                       fmt::format("leave --memory or --{} out", of_time));
}

}  // namespace

int validate_command(const Arguments& arguments, Session& session) {
  const bool studies = arguments.has("ablation") || arguments.has("leave-out");
  if (arguments.has("html") && (studies || arguments.has("memory")))
    throw UsageError(
        "--html shows predicted times beside measured ones, not --memory, --ablation or --leave-out",
        "give --html in a call of its own");
  refuse_contradictions(arguments);
  const std::optional<double> limit = max_error(arguments);
  Diagnostics diagnostics;
  const std::vector<KnownSource> sources = known_sources(session.data, diagnostics);
  const ScoreData data = load_score_data(session.data, diagnostics);
  if (diagnostics.has_errors()) {
    print_diagnostics(diagnostics.sorted(), arguments, session);
    return kWrongInput;
  }
  const Call call{.arguments = arguments,
                  .sources = sources,
                  .data = data,
                  .limit = limit,
                  .pages = arguments.has("markdown"),
                  .brief = is_brief(arguments, session),
                  .render = {.quiet = arguments.has("quiet"), .attribute = arguments.has("attribute")}};
  return studies ? print_studies(call, session) : score_files(call, session);
}

}  // namespace stagecraft
