// Reads arguments one by one and records the values read, their sources, and the unread ones.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"
#include "formats/import_entries.hpp"
#include "formats/megatron_arguments.hpp"
#include "formats/megatron_flags.hpp"

namespace stagecraft {

class MegatronReader {
 public:
  MegatronReader(const MegatronArguments& arguments, Diagnostics& diagnostics);

  // nullptr where it is absent, None, or holds a shell variable (reported). Marks the name as read.
  const MegatronArgument* given(std::string_view name);
  // A bare flag, or True.
  bool flag(std::string_view name);
  std::string text(std::string_view name);  // empty where absent
  // A list expression, or a number; empty where absent.
  std::string pattern(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t min = 1,
                                      std::int64_t max = 1'000'000'000);
  std::optional<double> number(std::string_view name, double min, double max);
  // The whole number of the argument; nullopt, without a report, where there is none.
  [[nodiscard]] std::optional<std::int64_t> stated(std::string_view name) const;
  // Reports when it is absent; 1 then.
  std::int64_t required(std::string_view name, std::int64_t max = 1'000'000'000);

  // "--tensor-model-parallel-size", "world_size"; "default" where it is absent.
  [[nodiscard]] ImportSource source(std::string_view name) const;
  // The name as the user would write it: with dashes unless this is a dump.
  [[nodiscard]] std::string spelled(std::string_view name) const;

  // A default that counted: one item of a list.
  void assume(std::string item);
  // Anything else that was assumed: a line of its own.
  void note(std::string line) { notes_.push_back(std::move(line)); }
  // Of an argument only the first is reported.
  void error(std::string_view name, std::string code, std::string message, std::string hint = {});
  [[nodiscard]] bool is_refused(std::string_view name) const { return refused_.contains(name); }
  void warning(std::string_view name, std::string code, std::string message, std::string hint = {});
  // Reports a model that is no decoder; `model` names its kind.
  void refuse(const SourceLocation& where, const std::string& what, std::string_view model);
  // Reports that an option of the importer asks for one value and `name` says another, `said`.
  void refuse_option(const char* option, std::int64_t asked, std::string_view name, const std::string& said);
  // Reports that `name` excludes `other`, which is on as well.
  void refuse_both(std::string_view name, std::string_view other);
  // About a key of the scenario that no argument says.
  void missing(Severity severity, std::string path, std::string message, std::string hint);

  [[nodiscard]] bool is_dump() const { return arguments_.door == MegatronArguments::Door::kDump; }
  // kNow, unless a name of the past stands there and none of now.
  [[nodiscard]] MegatronEra era() const { return era_; }
  // Is the job older than context parallelism and flash attention?
  [[nodiscard]] bool is_old() const { return era_ != MegatronEra::kNow; }
  // The argument that turns fp8 on; empty where none does.
  std::string_view fp8_switch();
  [[nodiscard]] const MegatronArguments& arguments() const { return arguments_; }
  [[nodiscard]] const std::vector<std::string>& assumed() const { return assumed_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  // Refuses unread arguments, or warns about them. Returns the lines of arguments without effect.
  [[nodiscard]] std::vector<std::string> finish();

 private:
  [[nodiscard]] const MegatronArgument* find(std::string_view name) const;
  void warn_of_dead_names();
  void refuse_two_names(const MegatronDeadName& dead, const MegatronArgument& old);
  // A switch, without marking it as read.
  [[nodiscard]] bool is_on(std::string_view name) const;
  // Why an unread argument has no effect; nullopt where it has one.
  [[nodiscard]] std::optional<std::string_view> without_effect(const MegatronArgument& item,
                                                               const MegatronFlag* flag) const;
  void report(const MegatronArgument& item, const MegatronFlag& flag);
  void unknown(const MegatronArgument& argument);

  MegatronArguments arguments_;
  Diagnostics& diagnostics_;
  MegatronEra era_ = MegatronEra::kNow;
  std::set<std::string, std::less<>> read_;
  std::set<std::string, std::less<>> refused_;  // an argument that is read in two places is refused once
  std::vector<std::string> assumed_, notes_;
};

}  // namespace stagecraft
