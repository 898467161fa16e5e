#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/text.hpp"
#include "base/text_file.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

namespace {

namespace fs = std::filesystem;

struct FileCloser {
  void operator()(std::FILE* stream) const { std::fclose(stream); }
};

// Names beside a missing file, sorted, so that the same one is suggested on every file system.
std::vector<std::string> names_in(const fs::path& folder) {
  constexpr std::size_t kEnough = 1000;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && names.size() < kEnough;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

Diagnostic no_such_file(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::error_code error;
  std::string hint;
  const fs::path with_ending = file.string() + ".yaml";
  if (!fs::is_directory(folder, error)) {
    hint = fmt::format("the folder '{}' does not exist", folder.string());
  } else if (fs::is_regular_file(with_ending, error)) {
    hint = fmt::format("did you mean '{}'?", with_ending.string());
  } else if (const auto nearest = nearest_name(file.filename().string(), names_in(folder))) {
    hint = fmt::format("did you mean '{}'?", (file.parent_path() / *nearest).string());
  } else {
    hint = fmt::format("the folder '{}' exists, but has no file of such a name", folder.string());
  }
  return {.code = "no-such-file", .where = {.file = file.string()}, .message = "no such file", .hint = hint};
}

Diagnostic unreadable(const std::string& name, const std::string& reason) {
  const std::string message = fmt::format("cannot be read: {}", reason);
  return {.code = "unreadable-file", .where = {.file = name}, .message = message};
}

// What is wrong with a file before it is opened: missing, a folder, something that may never answer, too
// large.
std::optional<Diagnostic> find_obstacle(const fs::path& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found) return no_such_file(file);
  if (error) return unreadable(file.string(), error.message());
  if (status.type() == fs::file_type::directory) {
    return Diagnostic{.code = "is-a-directory",
                      .where = {.file = file.string()},
                      .message = "is a directory, not a file",
                      .hint = "name a file in it"};
  }
  if (status.type() == fs::file_type::fifo || status.type() == fs::file_type::socket ||
      status.type() == fs::file_type::block) {
    return Diagnostic{.code = "not-a-file",
                      .where = {.file = file.string()},
                      .message = "is a pipe or a device, not a file",
                      .hint = "write - to read standard input"};
  }
  if (status.type() == fs::file_type::regular && fs::file_size(file, error) > kMaxYamlFileBytes && !error) {
    return detail::yaml_too_large(file.string());
  }
  return std::nullopt;
}

// At most one byte over the limit, so that an endless pipe ends. nullopt and errno when reading fails.
std::optional<std::string> read_limited(std::FILE* stream) {
  std::string text;
  char block[1 << 16];
  while (text.size() <= kMaxYamlFileBytes) {
    const std::size_t wanted = std::min(sizeof block, kMaxYamlFileBytes + 1 - text.size());
    const std::size_t got = std::fread(block, 1, wanted, stream);
    text.append(block, got);
    if (got < wanted) break;
  }
  if (std::ferror(stream) != 0) return std::nullopt;
  return text;
}

}  // namespace

std::string place_name(const std::filesystem::path& file) {
  return file == "-" ? "<stdin>" : file.string();
}

std::optional<std::string> load_text_file(const std::filesystem::path& file, Diagnostics& diagnostics) {
  const bool standard_input = file == "-";
  if (!standard_input) {
    if (auto obstacle = find_obstacle(file)) {
      diagnostics.error(std::move(*obstacle));
      return std::nullopt;
    }
  }
  const std::unique_ptr<std::FILE, FileCloser> opened(standard_input ? nullptr
                                                                     : std::fopen(file.c_str(), "rb"));
  std::FILE* const stream = standard_input ? stdin : opened.get();
  auto text = stream != nullptr ? read_limited(stream) : std::nullopt;
  if (!text) diagnostics.error(unreadable(place_name(file), std::generic_category().message(errno)));
  return text;
}

std::optional<YamlNode> load_yaml_file(const std::filesystem::path& file, Diagnostics& diagnostics) {
  const auto text = load_text_file(file, diagnostics);
  return text ? parse_yaml(*text, place_name(file), diagnostics) : std::nullopt;
}

}  // namespace stagecraft
