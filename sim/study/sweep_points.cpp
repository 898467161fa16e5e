#include "sim/study/sweep_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/text.hpp"
#include "sim/goodput/random.hpp"
#include "sim/scenario/known_keys.hpp"
#include "sim/study/base_facts.hpp"

namespace stagecraft {
namespace {

constexpr std::uint64_t kMostCandidates = 100'000'000;  // limit of a grid before `where`
constexpr std::uint64_t kMostDraws = 1'000;             // limit per wanted point of a random sample

constexpr const char* kUseVaried = "use the varied paths themselves";

// Source of a name in a constraint: an axis, a constant, or a product of such.
struct Binding {
  std::size_t axis = 0, slot = 0;
  std::optional<Fact> constant = {};
  std::vector<Binding> factors = {};
};

// `fact(axis, slot)` is the value there.
template <class FactAt>
Fact value_of(const Binding& binding, FactAt fact) {
  if (binding.constant) return *binding.constant;
  if (binding.factors.empty()) return fact(binding.axis, binding.slot);
  double product = 1;
  for (const Binding& factor : binding.factors) {
    const Fact value = value_of(factor, fact);
    if (!std::holds_alternative<double>(value)) return value;
    product *= std::get<double>(value);
  }
  return product;
}

// `name` is the path or its end after a dot.
bool means(const std::string& path, const std::string& name) {
  return path == name ||
         (path.size() > name.size() && path.ends_with(name) && path[path.size() - name.size() - 1] == '.');
}

class Binder {
 public:
  Binder(const SweepSpec& spec, Library& library, Diagnostics& diagnostics)
      : spec_(spec), library_(library), diagnostics_(diagnostics), facts_(spec, library) {}

  std::vector<Binding> bind(const Constraint& constraint) {
    std::vector<Binding> bindings;
    for (const std::string& name : constraint.names())
      bindings.push_back(name == kGpusFact ? bind_gpus(constraint) : bind(name, constraint));
    return bindings;
  }

 private:
  // GPUs of the job, as in the rows: a part of one node, whole nodes, those of groups of nodes, or the ranks of
  // a job without a cluster.
  Binding bind_gpus(const Constraint& constraint) {
    if (given_or_varied("cluster.gpus")) return bind("cluster.gpus", constraint);
    if (!has_cluster()) return bind_ranks(constraint);
    if (given_or_varied("cluster.node"))
      return {.factors = {bind("cluster.nodes", constraint), bind("cluster.node.gpus", constraint)}};
    const std::string gpus(kGpusFact);
    const auto found = facts_.all().find(gpus);
    const ErrorWatch watch(diagnostics_);
    check_constant(found == facts_.all().end() ? "cluster.nodes" : gpus, constraint);
    if (!watch.clean()) return {};
    if (found != facts_.all().end()) return {.constant = found->second};
    error(constraint, "not-constant",
          "gpus is not known before a point runs: the base does not load without what varies", kUseVaried);
    return {};
  }

  // Degrees that are left out are 1.
  Binding bind_ranks(const Constraint& constraint) {
    Binding ranks{.factors = {{.constant = 1.0}}};
    for (const char* degree : {"tensor", "context", "pipeline", "data"}) {
      const std::string path = std::string("parallelism.") + degree;
      if (given_or_varied(path))
        ranks.factors.push_back(bind(path, constraint));
      else
        check_constant(path, constraint);
    }
    return ranks;
  }

  [[nodiscard]] bool given_or_varied(const std::string& path) const {
    const std::vector<std::string> varied = spec_.paths();
    return facts_.all().contains(path) || std::ranges::find(varied, path) != varied.end();
  }

  [[nodiscard]] bool has_cluster() const {
    return facts_.all().contains("cluster") ||
           std::ranges::any_of(spec_.paths(), [](const std::string& path) {
             return path == "cluster" || path.starts_with("cluster.");
           });
  }

  Binding bind(const std::string& name, const Constraint& constraint) {
    std::map<std::string, Binding> varied;
    for (std::size_t a = 0; a < spec_.axes.size(); ++a)
      for (std::size_t slot = 0; slot < spec_.axes[a].paths.size(); ++slot)
        if (means(spec_.axes[a].paths[slot], name))
          varied.emplace(spec_.axes[a].paths[slot], Binding{.axis = a, .slot = slot});
    if (const Binding* one = the_one(varied, name, constraint)) return *one;
    if (!varied.empty()) return {};
    std::map<std::string, Fact> given;
    for (const auto& [path, fact] : facts_.all())
      if (means(path, name)) given.emplace(path, fact);
    const Fact* fact = the_one(given, name, constraint);
    if (fact == nullptr && given.empty()) unknown(name, constraint);
    if (fact == nullptr) return {};
    const auto found = std::ranges::find_if(given, [&](const auto& entry) { return &entry.second == fact; });
    check_constant(found->first, constraint);
    return {.constant = *fact};
  }

  // The exact path, the only one, or the one in `parallelism`; an error where several remain.
  template <class T>
  const T* the_one(const std::map<std::string, T>& candidates, const std::string& name,
                   const Constraint& constraint) {
    if (candidates.empty()) return nullptr;
    if (candidates.size() == 1) return &candidates.begin()->second;
    for (const std::string& best : {name, "parallelism." + name})
      if (const auto found = candidates.find(best); found != candidates.end()) return &found->second;
    std::vector<std::string> paths;
    for (const auto& [path, value] : candidates) paths.push_back(path);
    error(constraint, "ambiguous-name", fmt::format("{} may be {}", in_quotes(name), join(paths, " or ")),
          "write the whole path");
    return nullptr;
  }

  void unknown(const std::string& name, const Constraint& constraint) {
    for (const std::string& path : known_keys(spec_.base, library_))
      if (means(path, name))
        return error(constraint, "not-given", fmt::format("{} is neither varied nor given in the base", path),
                     "vary it, or give it: what is left out follows from others where a point is loaded");
    std::vector<std::string> names = spec_.paths();
    for (const auto& [path, fact] : facts_.all()) names.push_back(path);
    for (std::size_t i = 0, n = names.size(); i < n; ++i)
      names.push_back(names[i].substr(names[i].rfind('.') + 1));
    const auto near = nearest_name(name, names);
    error(constraint, "unknown-name",
          fmt::format("{} is neither varied nor a key of the base", in_quotes(name)),
          near ? fmt::format("did you mean '{}'?", *near) : "text stands in quotes: schedule == '1f1b'");
  }

  // model.layers is no constant where `model` varies, and no default is that follows from what varies.
  void check_constant(const std::string& path, const Constraint& constraint) {
    for (const std::string& varied : spec_.paths())
      if (path.starts_with(varied + ".") || varied.starts_with(path + "."))
        return error(constraint, "not-constant",
                     fmt::format("{} is not known before a point runs: {} varies", path, varied), kUseVaried);
    if (const std::vector<std::string> varied = facts_.follows(path); !varied.empty())
      error(constraint, "not-constant",
            fmt::format("{} is not known before a point runs: it follows from {}, which {}", path,
                        join(varied, " together with "), varied.size() > 1 ? "vary" : "varies"),
            path == kGpusFact ? kUseVaried : "vary it, or give it");
  }

  void error(const Constraint& constraint, std::string code, std::string message, std::string hint) {
    diagnostics_.error({.code = std::move(code),
                        .where = constraint.where(),
                        .path = "where",
                        .message = std::move(message),
                        .hint = std::move(hint)});
  }

  const SweepSpec& spec_;
  Library& library_;
  Diagnostics& diagnostics_;
  BaseFacts facts_;
};

std::size_t choice_at(const SweepAxis& axis, double share) {
  const auto count = static_cast<double>(axis.choices.size());
  return std::min(static_cast<std::size_t>(share * count), axis.choices.size() - 1);
}

YamlNode drawn(const SweepAxis& axis, double share) {
  return yaml_scalar(axis.range->drawn(share), axis.where);
}

// Uniform in [0, 1): a pure function of (seed, draw, axis).
double uniform(std::uint64_t seed, std::uint64_t draw, std::size_t axis) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto block = philox({low(draw), low(draw >> 32), low(axis), 0}, {low(seed), low(seed >> 32)});
  const std::uint64_t bits = (static_cast<std::uint64_t>(block[1]) << 32 | block[0]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace

class PointFinder {
 public:
  PointFinder(const SweepSpec& spec, Library& library, Diagnostics& diagnostics)
      : spec_(spec), diagnostics_(diagnostics) {
    points_.axes_ = spec.axes;
    for (const SweepAxis& axis : spec.axes) {
      auto& facts = facts_.emplace_back();
      for (const auto& values : axis.choices) {
        auto& row = facts.emplace_back();
        for (const YamlNode& value : values)
          row.push_back(value.kind == YamlNode::Kind::kNull ? Fact(TakenAway()) : fact_of(value));
      }
    }
    if (spec.where.empty()) return;
    Binder binder(spec, library, diagnostics);
    for (const Constraint& constraint : spec.where) bindings_.push_back(binder.bind(constraint));
  }

  std::optional<SweepPoints> find() {
    if (diagnostics_.has_errors()) return std::nullopt;
    if (!spec_.sampling)
      grid();
    else if (spec_.sampling->method == SampleMethod::kRandom)
      random();
    else
      latin_hypercube();
    if (diagnostics_.has_errors()) return std::nullopt;
    if (points_.size() == 0) {
      error("no-points", "no point is left", "`where` refuses all of them");
      return std::nullopt;
    }
    return std::move(points_);
  }

 private:
  void error(std::string code, std::string message, std::string hint) {
    const SourceLocation where =
        spec_.where.empty() ? SourceLocation{.file = spec_.source} : spec_.where[0].where();
    diagnostics_.error({.code = std::move(code),
                        .where = where,
                        .path = spec_.where.empty() ? "vary" : "where",
                        .message = std::move(message),
                        .hint = std::move(hint)});
  }

  // `fact(axis, slot)` is the value there. Reports the first constraint that has no answer.
  template <class FactAt>
  bool wanted(FactAt fact) {
    for (std::size_t c = 0; c < bindings_.size(); ++c) {
      std::vector<Fact> facts;
      for (const Binding& binding : bindings_[c]) facts.push_back(value_of(binding, fact));
      const Constraint::Verdict verdict = spec_.where[c].holds(facts);
      if (!verdict.mistake.empty()) {
        diagnostics_.error({.code = "bad-expression",
                            .where = spec_.where[c].where(),
                            .path = "where",
                            .message = verdict.mistake + described(spec_.where[c], facts)});
        return false;
      }
      if (!verdict.holds) return false;
    }
    return true;
  }

  // " (at tensor = 2, schedule = '1f1b')"
  static std::string described(const Constraint& constraint, std::span<const Fact> facts) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < facts.size(); ++i) {
      if (const double* number = std::get_if<double>(&facts[i]))
        parts.push_back(fmt::format("{} = {}", constraint.names()[i], *number));
      else if (const auto* text = std::get_if<std::string>(&facts[i]))
        parts.push_back(fmt::format("{} = {}", constraint.names()[i], in_quotes(*text)));
    }
    return parts.empty() ? "" : fmt::format(" (at {})", join(parts, ", "));
  }

  void grid() {
    std::uint64_t candidates = 1;
    const std::uint64_t most = bindings_.empty() ? kMostPoints : kMostCandidates;
    for (const SweepAxis& axis : spec_.axes) {
      candidates *= axis.choices.size();
      if (candidates > most)
        return error(
            "too-many",
            fmt::format("the grid has more than {} points", with_thousands(static_cast<std::int64_t>(most))),
            "vary less, or add `sample: {method: latin-hypercube, points: 1000}`");
    }
    std::vector<std::size_t> choice(spec_.axes.size());
    for (std::uint64_t number = 0; number < candidates; ++number) {
      std::uint64_t rest = number;
      for (std::size_t a = spec_.axes.size(); a-- > 0; rest /= spec_.axes[a].choices.size())
        choice[a] = static_cast<std::size_t>(rest % spec_.axes[a].choices.size());
      const bool keep = wanted([&](std::size_t axis, std::size_t slot) -> const Fact& {
        return facts_[axis][choice[axis]][slot];
      });
      if (diagnostics_.has_errors()) return;
      if (keep) points_.numbers_.push_back(number);
      if (points_.numbers_.size() > kMostPoints)
        return error("too-many", fmt::format("more than {} points are left", with_thousands(kMostPoints)),
                     "vary less");
    }
  }

  [[nodiscard]] Fact fact_at(std::size_t axis, std::size_t slot, double share) const {
    const SweepAxis& of = spec_.axes[axis];
    return of.range ? fact_of(drawn(of, share)) : facts_[axis][choice_at(of, share)][slot];
  }

  bool keep_sample(const std::vector<double>& shares) {
    const bool keep =
        wanted([&](std::size_t axis, std::size_t slot) { return fact_at(axis, slot, shares[axis]); });
    if (keep) points_.shares_.insert(points_.shares_.end(), shares.begin(), shares.end());
    return keep && !diagnostics_.has_errors();
  }

  void random() {
    const auto asked = static_cast<std::uint64_t>(spec_.sampling->points);
    std::uint64_t kept = 0;
    std::vector<double> shares(spec_.axes.size());
    for (std::uint64_t draw = 0; kept < asked && draw < asked * kMostDraws; ++draw) {
      for (std::size_t a = 0; a < shares.size(); ++a) shares[a] = uniform(spec_.sampling->seed, draw, a);
      if (keep_sample(shares)) ++kept;
      if (diagnostics_.has_errors()) return;
    }
    tell_of_fewer(kept, asked);
  }

  // Cuts each axis into as many slices as there are points and takes each slice once: McKay, Beckman and
  // Conover, Technometrics 21 (1979), 239. Draws `asked` shuffles by Fisher and Yates.
  void latin_hypercube() {
    const auto asked = static_cast<std::uint64_t>(spec_.sampling->points);
    const std::uint64_t seed = spec_.sampling->seed;
    std::vector<std::vector<std::uint64_t>> slices;
    for (std::size_t a = 0; a < spec_.axes.size(); ++a) {
      std::vector<std::uint64_t>& order = slices.emplace_back(asked);
      std::iota(order.begin(), order.end(), std::uint64_t{0});
      for (std::uint64_t i = asked; i > 1; --i) {
        const double share = uniform(seed, asked + i, a);  // the first `asked` draws place points in slices
        std::swap(order[i - 1], order[static_cast<std::size_t>(share * static_cast<double>(i))]);
      }
    }
    std::uint64_t kept = 0;
    std::vector<double> shares(spec_.axes.size());
    for (std::uint64_t i = 0; i < asked; ++i) {
      for (std::size_t a = 0; a < shares.size(); ++a)
        shares[a] = (static_cast<double>(slices[a][i]) + uniform(seed, i, a)) / static_cast<double>(asked);
      if (keep_sample(shares)) ++kept;
      if (diagnostics_.has_errors()) return;
    }
    tell_of_fewer(kept, asked);
  }

  void tell_of_fewer(std::uint64_t kept, std::uint64_t asked) {
    if (kept == asked || kept == 0) return;
    diagnostics_.warning({.code = "fewer-points",
                          .where = spec_.where[0].where(),
                          .path = "where",
                          .message = fmt::format("{} of the {} points asked for are left", kept, asked)});
  }

  const SweepSpec& spec_;
  Diagnostics& diagnostics_;
  std::vector<std::vector<std::vector<Fact>>> facts_;  // by axis, choice, slot
  std::vector<std::vector<Binding>> bindings_;         // by constraint, name
  SweepPoints points_;
};

std::optional<SweepPoints> SweepPoints::of(const SweepSpec& spec, Library& library,
                                           Diagnostics& diagnostics) {
  return PointFinder(spec, library, diagnostics).find();
}

std::size_t SweepPoints::size() const {
  return shares_.empty() ? numbers_.size() : shares_.size() / axes_.size();
}

std::vector<Assignment> SweepPoints::assignments(std::size_t point) const {
  SC_CHECK(point < size(), "a point of the sweep");
  std::vector<Assignment> all;
  std::uint64_t rest = shares_.empty() ? numbers_[point] : 0;
  std::vector<std::size_t> choice(axes_.size());
  for (std::size_t a = axes_.size(); a-- > 0;) {
    const std::size_t count = std::max<std::size_t>(axes_[a].choices.size(), 1);
    if (!shares_.empty() && !axes_[a].range)
      choice[a] = choice_at(axes_[a], shares_[point * axes_.size() + a]);
    if (shares_.empty()) choice[a] = static_cast<std::size_t>(rest % count);
    rest /= count;
  }
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const SweepAxis& axis = axes_[a];
    for (std::size_t slot = 0; slot < axis.paths.size(); ++slot)
      all.push_back({.path = axis.paths[slot],
                     .value = axis.range ? drawn(axis, shares_[point * axes_.size() + a])
                                         : axis.choices[choice[a]][slot]});
  }
  return all;
}

}  // namespace stagecraft
