#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "base/yaml.hpp"
#include "base/yaml_assign.hpp"

namespace stagecraft {

namespace {

std::vector<std::string> split_at_dots(std::string_view path) {
  const std::vector<std::string_view> parts = split(path, '.');
  return {parts.begin(), parts.end()};
}

// Values from the command line have no line: the whole option is their place.
void move_to(YamlNode& node, const SourceLocation& where) {
  node.where = where;
  if (node.defined_at) node.defined_at = where;
  for (YamlNode& item : node.items) move_to(item, where);
  for (YamlEntry& entry : node.entries) {
    entry.where = where;
    move_to(entry.value, where);
  }
}

// A value for a path: its parts, and where its mistakes go.
class Override {
 public:
  Override(SourceLocation where, Diagnostics& diagnostics)
      : where_(std::move(where)), diagnostics_(diagnostics) {}

  void apply(YamlNode& root, std::string_view assignment) {
    const auto equals = assignment.find('=');
    if (equals == std::string_view::npos)
      return error("", "there is no '=' in it", "write path.to.key=value");
    const std::string path(assignment.substr(0, equals));
    if (!is_path(path)) return;
    const std::optional<YamlNode> value = parse_value(path, assignment.substr(equals + 1));
    if (value) put(root, path, *value);
  }

  void apply(YamlNode& root, const std::string& path, const YamlNode& value) {
    if (is_path(path)) put(root, path, value);
  }

 private:
  void put(YamlNode& root, const std::string& path, const YamlNode& value) {
    const auto parts = split_at_dots(path);
    if (value.kind == YamlNode::Kind::kNull) return take_away(root, path, parts);
    if (YamlNode* target = descend(root, parts)) *target = value;
  }

  bool is_path(const std::string& path) {
    const auto parts = split_at_dots(path);
    if (parts.size() > static_cast<std::size_t>(kMaxYamlDepth)) {
      error("", fmt::format("the path has more than {} keys", kMaxYamlDepth));
      return false;
    }
    if (std::ranges::find(parts, "") != parts.end()) {
      error(path, "the path has an empty key", "write path.to.key=value");
      return false;
    }
    return true;
  }

  void error(std::string path, std::string message, std::string hint = {}) {
    diagnostics_.error({.code = "bad-override",
                        .where = where_,
                        .path = std::move(path),
                        .message = std::move(message),
                        .hint = std::move(hint)});
  }

  std::optional<YamlNode> parse_value(const std::string& path, std::string_view text) {
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
      error(path, "there is no value after '='", "null takes a value away, \"\" is the empty text");
      return std::nullopt;
    }
    // `assert.mfu=>= 0.4`: on a command line nothing is a block of lines.
    if (const auto value = trimmed(text); value.starts_with('>'))
      return yaml_scalar(std::string(value), where_);
    return parse_option(text, where_, path, diagnostics_);
  }

  // A key that is not there is gone already.
  void take_away(YamlNode& root, const std::string& path, const std::vector<std::string>& parts) {
    YamlNode* at = &root;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const bool list = at->kind == YamlNode::Kind::kSequence;
      at = list ? item_of(*at, parts[i], join(std::span(parts).first(i), ".")) : at->find(parts[i]);
      if (at == nullptr) return;
    }
    if (at->kind == YamlNode::Kind::kSequence)
      return error(path, "nothing can be taken out of a list", "give the whole list");
    std::erase_if(at->entries, [&](const YamlEntry& entry) { return entry.key == parts.back(); });
  }

  // The place of the value; makes what is missing on the way. nullptr when the way is blocked.
  YamlNode* descend(YamlNode& root, const std::vector<std::string>& parts) {
    YamlNode* at = &root;
    std::string path;
    for (const std::string& part : parts) {
      if (at->kind == YamlNode::Kind::kNull) {
        at->kind = YamlNode::Kind::kMap;
        at->where = where_;
      }
      if (at->kind == YamlNode::Kind::kScalar) {
        error(path, fmt::format("is no mapping: it is {}", in_quotes(at->text)));
        return nullptr;
      }
      YamlNode* next = at->kind == YamlNode::Kind::kMap ? entry_of(*at, part) : item_of(*at, part, path);
      if (next == nullptr) return nullptr;
      path += path.empty() ? part : "." + part;
      at = next;
    }
    return at;
  }

  YamlNode* entry_of(YamlNode& map, const std::string& key) {
    auto entry = std::ranges::find(map.entries, key, &YamlEntry::key);
    if (entry == map.entries.end()) entry = map.entries.insert(entry, {.key = key, .where = where_});
    return &entry->value;
  }

  YamlNode* item_of(YamlNode& list, const std::string& index, const std::string& path) {
    const auto number = parse_integer(index);
    const bool inside = number && *number >= 0 && static_cast<std::size_t>(*number) < list.items.size();
    if (inside) return &list.items[static_cast<std::size_t>(*number)];
    error(path, fmt::format("is a list of {}: there is no entry {}", list.items.size(), in_quotes(index)),
          number || list.items.empty()
              ? "entries count from 0"
              : fmt::format("say of which entry: {}.0.{} is the first one's", path, index));
    return nullptr;
  }

  SourceLocation where_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::optional<YamlNode> parse_option(std::string_view text, const SourceLocation& option,
                                     const std::string& path, Diagnostics& diagnostics) {
  Diagnostics mistakes;
  std::optional<YamlNode> value = parse_yaml(text, option.file, mistakes);
  for (Diagnostic mistake : mistakes.items()) {
    mistake.where = option;
    mistake.path = mistake.path.empty() ? path : fmt::format("{}.{}", path, mistake.path);
    mistake.notes.clear();
    diagnostics.add(std::move(mistake));
  }
  if (value) move_to(*value, option);
  return value;
}

void apply_override(YamlNode& root, const std::string& assignment, Diagnostics& diagnostics) {
  Override({.file = "--set " + assignment}, diagnostics).apply(root, assignment);
}

void apply_override(YamlNode& root, const std::string& path, const YamlNode& value,
                    Diagnostics& diagnostics) {
  Override(value.where, diagnostics).apply(root, path, value);
}

}  // namespace stagecraft
