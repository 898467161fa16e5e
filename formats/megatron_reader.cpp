#include "formats/megatron_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"

namespace stagecraft {

namespace {

bool says_off(const MegatronArgument& argument, bool dump) {
  if (argument.values.empty()) return dump;  // a bare flag is on, None is off
  constexpr std::array<std::string_view, 7> kOff{"False", "None", "0", "[]", "0.0", "none", "false"};
  return argument.values.size() == 1 && std::ranges::find(kOff, argument.values.front()) != kOff.end();
}

bool is_harmless(const MegatronFlag& flag, const MegatronArgument& argument) {
  if (flag.harmless.empty() || argument.values.size() != 1) return false;
  return fmt::format("|{}|", flag.harmless).find(fmt::format("|{}|", argument.values.front())) !=
         std::string::npos;
}

bool is_renamed(std::string_view name) {
  const auto dead = megatron_dead_names();
  return std::ranges::any_of(dead,
                             [&](const MegatronDeadName& old) { return old.name == name && old.same_value; });
}

// Old names under the new ones, where the value means the same and the new name is absent.
void rename_dead(MegatronArguments& arguments) {
  for (const MegatronDeadName& dead : megatron_dead_names()) {
    const MegatronArgument* now = arguments.find(dead.now);
    if (!dead.same_value || arguments.find(dead.name) == nullptr || (now != nullptr && !now->values.empty()))
      continue;
    std::erase_if(arguments.items, [&](const MegatronArgument& item) { return item.name == dead.now; });
    std::ranges::find(arguments.items, dead.name, &MegatronArgument::name)->name = dead.now;
  }
}

}  // namespace

MegatronReader::MegatronReader(const MegatronArguments& arguments, Diagnostics& diagnostics)
    : arguments_(arguments), diagnostics_(diagnostics) {
  const auto& items = arguments.items;
  if (std::ranges::any_of(items, [](const auto& item) { return is_of_2021(item.name); })) {
    era_ = MegatronEra::k2021;
    for (const MegatronArgument& item : items) era_ = std::max(era_, megatron_era_of(item.name));
  }
  if (!is_dump()) warn_of_dead_names();
  rename_dead(arguments_);
}

void MegatronReader::warn_of_dead_names() {
  for (const MegatronDeadName& dead : megatron_dead_names()) {
    const MegatronArgument* item = find(dead.name);
    if (item == nullptr) continue;
    refuse_two_names(dead, *item);
    diagnostics_.warning({.code = "old-name",
                          .where = item->where,
                          .path = item->spelled,
                          .message = fmt::format("is a name of the past, read as {}", spelled(dead.now))});
  }
}

void MegatronReader::refuse_two_names(const MegatronDeadName& dead, const MegatronArgument& old) {
  const MegatronArgument* now = find(dead.now);
  if (!dead.same_value || now == nullptr || now->values.empty() || now->values == old.values) return;
  if (!now->unexpanded.empty() || !old.unexpanded.empty()) return;
  diagnostics_.error({.code = "contradiction",
                      .where = old.where,
                      .path = old.spelled,
                      .message = fmt::format("says {}, and {} says {}", join(old.values, " "), now->spelled,
                                             join(now->values, " ")),
                      .hint = fmt::format("keep {}", now->spelled),
                      .notes = {{.where = now->where, .message = "the newer name stands here"}}});
}

std::string_view MegatronReader::fp8_switch() {
  if (given("fp8") != nullptr) return "fp8";
  return flag("fp8_hybrid") ? "fp8_hybrid" : flag("fp8_e4m3") ? "fp8_e4m3" : std::string_view();
}

bool MegatronReader::is_on(std::string_view name) const {
  const MegatronArgument* item = find(name);
  if (item != nullptr && !says_off(*item, is_dump())) return true;
  return name == "fp8" && (is_on("fp8_hybrid") || is_on("fp8_e4m3"));
}

const MegatronArgument* MegatronReader::find(std::string_view name) const {
  return arguments_.find(name);
}

const MegatronArgument* MegatronReader::given(std::string_view name) {
  const MegatronArgument* item = find(name);
  if (item == nullptr) return nullptr;
  read_.emplace(name);
  if (!item->unexpanded.empty()) {
    if (refused_.emplace(name).second) {
      const std::string& variable = item->unexpanded.front();
      const bool command = variable == "`…`" || variable == "(…)";
      const bool named = !command && variable != "{…}";
      diagnostics_.error({.code = "unexpanded-variable",
                          .where = item->where,
                          .path = item->spelled,
                          .message = command
                                         ? "what a command would print is not known, and no command is run"
                                         : fmt::format("the value of ${} is not known", variable),
                          .hint = named ? fmt::format("--define {}=VALUE", variable) : "write its value"});
    }
    return nullptr;
  }
  if (is_dump() && item->values.empty()) return nullptr;
  if (item->values.size() == 1 && item->values.front() == "None") return nullptr;
  return item;
}

bool MegatronReader::flag(std::string_view name) {
  const MegatronArgument* item = given(name);
  return item != nullptr && !says_off(*item, is_dump());
}

std::string MegatronReader::text(std::string_view name) {
  const MegatronArgument* item = given(name);
  if (item == nullptr) return {};
  if (item->values.size() == 1) return item->values.front();
  error(name, "not-one-value", fmt::format("needs one value, and has {}", item->values.size()));
  return {};
}

// A list in a dump has come apart into its items; that of a shell may have been split at blanks.
std::string MegatronReader::pattern(std::string_view name) {
  const MegatronArgument* item = given(name);
  if (item == nullptr) return {};
  const bool apart = is_dump() && item->values.size() != 1;
  return apart ? fmt::format("[{}]", join(item->values, ",")) : join(item->values, " ");
}

std::optional<std::int64_t> MegatronReader::integer(std::string_view name, std::int64_t min,
                                                    std::int64_t max) {
  if (given(name) == nullptr) return std::nullopt;
  const std::string word = text(name);
  const std::optional<std::int64_t> value = parse_integer(word);
  if (!value)
    error(name, "not-a-number", fmt::format("{} is no whole number", in_quotes(word)));
  else if (*value < min || *value > max)
    error(name, "out-of-range", fmt::format("{} is not between {} and {}", *value, min, max));
  else
    return value;
  return std::nullopt;
}

std::optional<std::int64_t> MegatronReader::stated(std::string_view name) const {
  const MegatronArgument* item = find(name);
  if (item == nullptr || item->values.size() != 1 || !item->unexpanded.empty()) return std::nullopt;
  return parse_integer(item->values.front());
}

std::optional<double> MegatronReader::number(std::string_view name, double min, double max) {
  if (given(name) == nullptr) return std::nullopt;
  const std::optional<double> value = parse_number(text(name));
  if (value && *value >= min && *value <= max) return value;
  error(name, "out-of-range", fmt::format("a number between {:g} and {:g} belongs here", min, max));
  return std::nullopt;
}

std::int64_t MegatronReader::required(std::string_view name, std::int64_t max) {
  const std::optional<std::int64_t> value = integer(name, 1, max);
  if (!value) error(name, "missing-option", "is required, but not given");  // unless it is refused already
  return value.value_or(1);
}

ImportSource MegatronReader::source(std::string_view name) const {
  const MegatronArgument* item = find(name);
  if (item == nullptr || (is_dump() && item->values.empty()))
    return {.comment = is_dump() ? "not in the dump" : "default", .where = {arguments_.file, 0, 0}};
  return {.comment = item->spelled, .where = item->where};
}

std::string MegatronReader::spelled(std::string_view name) const {
  if (const MegatronArgument* item = find(name)) return item->spelled;
  if (is_dump()) return std::string(name);
  for (const MegatronSpelling& spelling : megatron_spellings())
    if (spelling.name == name && spelling.value.empty()) name = spelling.option;
  std::string option(name);
  std::ranges::replace(option, '_', '-');
  return "--" + option;
}

void MegatronReader::missing(Severity severity, std::string path, std::string message, std::string hint) {
  diagnostics_.add({.severity = severity,
                    .code = "missing",
                    .where = {arguments_.file, 0, 0},
                    .path = std::move(path),
                    .message = std::move(message),
                    .hint = std::move(hint)});
}

void MegatronReader::assume(std::string item) {
  if (std::ranges::find(assumed_, item) == assumed_.end()) assumed_.push_back(std::move(item));
}

void MegatronReader::error(std::string_view name, std::string code, std::string message, std::string hint) {
  if (!refused_.emplace(name).second) return;
  diagnostics_.error({.code = std::move(code),
                      .where = source(name).where,
                      .path = spelled(name),
                      .message = std::move(message),
                      .hint = std::move(hint)});
}

void MegatronReader::warning(std::string_view name, std::string code, std::string message, std::string hint) {
  diagnostics_.warning({.code = std::move(code),
                        .where = source(name).where,
                        .path = spelled(name),
                        .message = std::move(message),
                        .hint = std::move(hint)});
}

void MegatronReader::refuse(const SourceLocation& where, const std::string& what, std::string_view model) {
  diagnostics_.error({.code = "not-supported",
                      .where = where,
                      .path = what,
                      .message = fmt::format("is not supported: {}", model)});
}

void MegatronReader::refuse_option(const char* option, std::int64_t asked, std::string_view name,
                                   const std::string& said) {
  diagnostics_.error(contradicted_option(option, std::to_string(asked), said, source(name).where));
}

void MegatronReader::refuse_both(std::string_view name, std::string_view other) {
  const MegatronArgument *one = find(name), *two = find(other);
  if (one == nullptr || two == nullptr || !refused_.emplace(name).second) return;
  const std::string values = join(two->values, " ");
  diagnostics_.error({.code = "contradiction",
                      .where = one->where,
                      .path = one->spelled,
                      .message = fmt::format("{} stands beside {}{}", join(one->values, " "), two->spelled,
                                             values.empty() ? "" : " " + values),
                      .hint = "keep one of them: Megatron-LM refuses both together",
                      .notes = {{.where = two->where, .message = "the other stands here"}}});
}

void MegatronReader::unknown(const MegatronArgument& argument) {
  std::vector<std::string> names;
  for (const MegatronFlag& flag : megatron_flags())
    if (flag.name.find('*') == std::string_view::npos) names.emplace_back(flag.name);
  for (const MegatronSpelling& spelling : megatron_spellings()) names.emplace_back(spelling.option);
  std::string hint = "if it changes time or memory, the prediction does not know";
  constexpr std::size_t kShort = 4;  // a letter or two resemble many names
  if (const auto near = nearest_name(argument.name, names); near && argument.name.size() >= kShort)
    hint = fmt::format("did you mean {}?", spelled(*near));
  const bool shape = names_a_shape(argument.name);
  const bool refused = shape && !is_dump();
  if (refused && !hint.starts_with("did"))
    hint =
        "an option that Megatron-LM has at commit 000c4ac says it; leave it out to import the model without "
        "it";
  diagnostics_.add({.severity = refused ? Severity::kError : Severity::kWarning,
                    .code = "unknown-option",
                    .where = argument.where,
                    .path = argument.spelled,
                    .message = shape ? "is not known here, and by its name it changes the model"
                                     : "is not known here, and not read",
                    .hint = std::move(hint)});
}

std::optional<std::string_view> MegatronReader::without_effect(const MegatronArgument& item,
                                                               const MegatronFlag* flag) const {
  if (is_renamed(item.name)) return "said under a newer name";
  if (flag == nullptr && item.before_program) return kLauncherSubject;
  const MegatronSwitch* needed =
      flag == nullptr ? megatron_switch_of(item.name) : find_megatron_switch(flag->needs);
  if (needed != nullptr && !is_on(needed->name)) return needed->without;
  if (flag == nullptr) return std::nullopt;
  if (flag->kind == MegatronFlagKind::kRead || flag->kind == MegatronFlagKind::kAside) return flag->text;
  const bool off = says_off(item, is_dump()), harmless = is_harmless(*flag, item);
  if (flag->kind == MegatronFlagKind::kDefaultOn)
    return off || harmless ? std::nullopt : std::optional("as by default");
  if (off) return "off";
  return harmless ? std::optional("as is modelled") : std::nullopt;
}

void MegatronReader::report(const MegatronArgument& item, const MegatronFlag& flag) {
  if (flag.kind == MegatronFlagKind::kRefused) return refuse(item.where, item.spelled, flag.text);
  diagnostics_.warning({.code = "not-modelled",
                        .where = item.where,
                        .path = item.spelled,
                        .message = fmt::format("is not modelled: {}", flag.text)});
}

std::vector<std::string> MegatronReader::finish() {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // in the order of the file
  const auto put_aside = [&](std::string_view about, const std::string& name) {
    auto group = std::ranges::find_if(groups, [&](const auto& g) { return g.first == about; });
    if (group == groups.end()) group = groups.insert(groups.end(), {std::string(about), {}});
    group->second.push_back(name);
  };
  std::size_t off = 0;
  for (const MegatronArgument& item : arguments_.items) {
    if (read_.contains(item.name)) continue;
    const MegatronFlag* flag = find_megatron_flag(item.name);
    const bool on_by_default = flag != nullptr && flag->kind == MegatronFlagKind::kDefaultOn;
    if (is_dump() && !on_by_default && says_off(item, true)) {
      ++off;
    } else if (const auto about = without_effect(item, flag)) {
      put_aside(*about, item.spelled);
    } else if (flag == nullptr) {
      unknown(item);
    } else {
      report(item, *flag);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [about, names] : groups) {
    const std::vector<std::string> group = wrapped(about + ": ", names);
    lines.insert(lines.end(), group.begin(), group.end());
  }
  if (off > 0) lines.push_back(fmt::format("{} arguments that are None, False, 0 or empty", off));
  return lines;
}

}  // namespace stagecraft
