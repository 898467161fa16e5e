#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "tools/reference/key_help.hpp"
#include "tools/reference/render.hpp"

namespace stagecraft {
namespace {

constexpr const char* kHead = R"(# Scenario reference

Every key of a scenario and of a sweep: what it may hold, what holds without it, what it means. This page is written by the readers
themselves (`stagecraft-reference`), and a test keeps it so.

Quantities carry units, per direction where they are rates: times `ns us ms s min h days`, sizes `B kB MB GB TB` and
`KiB MiB GiB TiB`, rates in those per second and in bits (`200 Gb/s`). `0` needs none. Counts and shares are bare; `12_000` and `1e3`
are numbers. Relative paths are relative to the file. A key that nobody knows, twice the same key and a number without its unit are
errors. `stagecraft check` says what several keys decide together; `stagecraft run --verbose` which defaults mattered.

## In an editor

`docs/schema/` (installed: `share/stagecraft/schema/`) has a JSON Schema of each kind of file: `scenario`, `sweep`, and of what a scenario
names, `model`, `node` and `fabric`. Editors that run yaml-language-server (VS Code with its YAML extension, Neovim, Emacs, Helix)
complete keys, show this page's words on hover and underline mistakes where the first line of the file says so:

```yaml
# yaml-language-server: $schema=/usr/share/stagecraft/schema/scenario.schema.json
stagecraft: 1
```

or, once for a whole project, in VS Code's `settings.json`:

```json
{"yaml.schemas": {"/usr/share/stagecraft/schema/scenario.schema.json": "scenarios/*.yaml"}}
```

The schema refuses what a schema can see: unknown keys, wrong types, units, words and ranges, missing keys, keys that another `kind`
reads. The loader refuses more.
)";

std::string bounds(const KeyForm& form) {
  const auto shown = [](double limit) {
    return limit == static_cast<double>(static_cast<std::int64_t>(limit))
               ? with_thousands(static_cast<std::int64_t>(limit))
               : fmt::format("{}", limit);
  };
  if (form.min && form.max) return fmt::format(", {} to {}", shown(*form.min), shown(*form.max));
  if (form.min) return fmt::format(", at least {}", shown(*form.min));
  return form.max ? fmt::format(", at most {}", shown(*form.max)) : "";
}

std::string words(const std::vector<std::string>& all) {
  std::vector<std::string> quoted;
  for (const std::string& word : all) quoted.push_back("`" + word + "`");
  return join(quoted, " ");
}

std::string type_of(const KeyForm& form) {
  switch (form.kind) {
    case KeyForm::Kind::kInteger:
      return "whole number" + bounds(form);
    case KeyForm::Kind::kNumber:
      return "number" + bounds(form);
    case KeyForm::Kind::kBoolean:
      return "`true` `false`";
    case KeyForm::Kind::kText:
      return "text";
    case KeyForm::Kind::kChoice:
      return words(form.words);
    case KeyForm::Kind::kDuration:
      return "time";
    case KeyForm::Kind::kBytes:
      return "size";
    case KeyForm::Kind::kBandwidth:
      return "rate";
    case KeyForm::Kind::kFlopRate:
      return "FLOP rate";
    case KeyForm::Kind::kMap:
      return "mapping";
    case KeyForm::Kind::kMaps:
      return "list of mappings";
    case KeyForm::Kind::kAny:
      break;
  }
  return "see right";
}

std::string types_of(const KeyHelp* help, const ReferenceKey& key) {
  if (help != nullptr && !help->holds.empty()) return std::string(help->holds);
  const bool choice =
      std::ranges::any_of(key.forms, [](const KeyForm& form) { return form.kind == KeyForm::Kind::kChoice; });
  std::vector<std::string> types;
  for (const KeyForm& form : key.forms) {
    if (choice && form.kind == KeyForm::Kind::kText) continue;
    types.push_back(type_of(form) + (form.list ? ", or a list" : ""));
  }
  return join(types, "; or ");
}

// "kind: weibull, bursts", of a key that does not count under every word; empty where it does.
std::string only_where(const Reference& reference, const ReferenceKey& key) {
  if (key.counts.contains("")) return "";
  const auto choices = reference.choices.find(key.mapping());
  if (choices == reference.choices.end()) return "";
  for (const auto& [deciding, all] : choices->second) {
    std::vector<std::string> some;
    for (const std::string& word : all)
      if (key.counts.contains(deciding + ": " + word)) some.push_back("`" + word + "`");
    if (some.size() < all.size()) return fmt::format("`{}`: {}", deciding, join(some, ", "));
  }
  return "";
}

std::string row(DocumentKind kind, const Reference& reference, const ReferenceKey& key) {
  const KeyHelp* help = find_help(kind, key.path);
  std::string meaning = help == nullptr ? "" : std::string(help->help);
  if (const std::string only = only_where(reference, key); !only.empty())
    meaning = fmt::format("{} ({})", meaning, only);
  const std::string fallback = is_required(kind, key) ? "**required**" : fallback_of(kind, key);
  return fmt::format("| `{}` | {} | {} | {} |\n", key.name(), markdown_cell(types_of(help, key)),
                     markdown_cell(fallback), markdown_cell(meaning));
}

// The keys of one mapping.
std::string table(DocumentKind kind, const Reference& reference, const std::string& path) {
  std::string rows;
  for (const ReferenceKey& key : reference.keys)
    if (key.mapping() == path) rows += row(kind, reference, key);
  return "\n| key | holds | without it | |\n|---|---|---|---|\n" + rows;
}

std::string section(DocumentKind kind, const Reference& reference, const char* title) {
  std::vector<std::string> paths{""};
  for (const ReferenceKey& key : reference.keys) {
    if (std::ranges::find(paths, key.mapping()) == paths.end()) paths.push_back(key.mapping());
  }
  // A mapping stands beside those of its section.
  std::ranges::stable_sort(paths, {}, [&](const std::string& path) {
    const std::string root = path.substr(0, path.find('.'));
    const auto at = std::ranges::find(reference.keys, root, &ReferenceKey::path);
    return path.empty() ? -1 : at - reference.keys.begin();
  });
  std::string out = fmt::format("\n## {}\n", title);
  for (const std::string& path : paths) {
    if (!path.empty()) out += fmt::format("\n### `{}`\n", path);
    out += table(kind, reference, path);
  }
  return out;
}

}  // namespace

std::string render_markdown(const References& references) {
  return kHead + section(DocumentKind::kScenario, references.scenario, "A scenario") +
         section(DocumentKind::kSweep, references.sweep, "A sweep");
}

}  // namespace stagecraft
