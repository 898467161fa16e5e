#include "tools/command_line/files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <system_error>
#include <utility>

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

void refuse(const std::string& file, std::string code, std::string message, std::string hint,
            Diagnostics& diagnostics) {
  diagnostics.error({.code = std::move(code),
                     .where = {file, 0, 0},
                     .message = std::move(message),
                     .hint = std::move(hint)});
}

// A way out of what the system says.
const char* way_to_write(int reason) {
  switch (reason) {
    case ENOENT:
    case ENOTDIR:
      return "there is no such folder: make it first, or write elsewhere";
    case EACCES:
    case EPERM:
    case EROFS:
      return "this folder is not yours to write to: name a file in another";
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "make room, or write to another disk";
    default:
      return "";
  }
}

void cannot_write(const std::string& file, int reason, Diagnostics& diagnostics) {
  refuse(file, "cannot-write", fmt::format("cannot be written: {}", std::strerror(reason)),
         way_to_write(reason), diagnostics);
}

// Target of symbolic links, which need not exist yet.
fs::path behind_links(fs::path path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  std::error_code ignored;
  for (int i = 0; i < kMostLinks && fs::is_symlink(fs::symlink_status(path, ignored)); ++i)
    path = path.parent_path() / fs::read_symlink(path, ignored);
  return path;
}

// The same for all names of a file.
fs::path one_name(const std::string& file) {
  std::error_code ignored;
  return fs::weakly_canonical(fs::absolute(behind_links(file), ignored), ignored);
}

// Streams say that they failed, and the system why.
int reason_of_failure() {
  return errno != 0 ? errno : EIO;
}

// 0 when all of it was written, otherwise the system's reason.
int write_out(std::ofstream& out, const MakePieces& make) {
  if (!out) return reason_of_failure();
  int reason = 0;
  make([&](std::string_view piece) {
    if (reason != 0) return;
    out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    if (!out) reason = reason_of_failure();
  });
  out.close();
  return reason == 0 && out.fail() ? reason_of_failure() : reason;
}

// Writes to a device or a pipe in place.
int write_through(const fs::path& path, const MakePieces& make) {
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  return write_out(out, make);
}

// Two processes may write the same file at once, on two machines that share a folder.
fs::path part_of(const fs::path& path) {
  return fmt::format("{}.{:08x}.part", path.string(), std::random_device{}());
}

// Writes a temporary file and renames it, with the mode of the replaced file, so that no reader sees half of
// it.
int replace_file(const fs::path& path, const fs::file_status& now, const MakePieces& make) {
  const fs::path beside = part_of(path);
  std::error_code error, ignored;
  errno = 0;
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  const int opening = errno;
  if (fs::is_regular_file(now)) fs::permissions(beside, now.permissions(), ignored);
  errno = opening;
  int reason = write_out(out, make);
  if (reason == 0) fs::rename(beside, path, error);
  if (error) reason = error.value();
  if (reason != 0) fs::remove(beside, ignored);
  return reason;
}

}  // namespace

std::optional<std::string> read_text_file(const std::string& file, Diagnostics& diagnostics) {
  if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) {
    refuse(file, "is-directory", "is a directory", {}, diagnostics);
    return std::nullopt;
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    refuse(file, "cannot-open", fmt::format("cannot be opened: {}", std::strerror(errno)), {}, diagnostics);
    return std::nullopt;
  }
  return std::string(std::istreambuf_iterator<char>(in), {});
}

bool may_write(const std::string& file, bool replace, Diagnostics& diagnostics) {
  std::error_code ignored;
  const fs::file_status status = fs::status(file, ignored);
  if (fs::is_directory(status)) {
    refuse(file, "is-directory", "is a directory", "give the path of a file", diagnostics);
    return false;
  }
  if (!replace && fs::exists(status)) {
    refuse(file, "exists", "exists and is left as it is",
           fs::is_regular_file(status) ? "--force replaces it" : "--force writes to it", diagnostics);
    return false;
  }
  const bool in_place = fs::exists(status) && !fs::is_regular_file(status);
  const fs::path opened = in_place ? fs::path(file) : fs::absolute(behind_links(file), ignored).parent_path();
  if (::access(opened.c_str(), W_OK) == 0) return true;
  cannot_write(file, errno, diagnostics);
  return false;
}

void check_outputs(const Arguments& arguments) {
  Diagnostics diagnostics;
  std::map<fs::path, std::string_view> options;
  std::set<fs::path> read;
  for (const std::string& word : arguments.words()) read.insert(one_name(word));
  for (const OptionSpec& option : arguments.command().options) {
    auto file = arguments.text(option.name);
    if (option.written == Written::kNo || !file) continue;
    if (*file == "-")
      throw UsageError(fmt::format("--{} writes a file, and - is none", option.name),
                       fmt::format("--{} ./- makes a file of this name", option.name));
    *file += option.first_file;
    const fs::path name = one_name(*file);
    if (read.contains(name))
      throw UsageError(fmt::format("--{} is '{}', which the command reads", option.name, *file),
                       "write it into another file");
    const auto [other, first] = options.emplace(name, option.name);
    if (!first)
      throw UsageError(fmt::format("--{} and --{} are both '{}'", other->second, option.name, *file),
                       "write them into two files");
    if (option.written == Written::kAtEnd) (void)may_write(*file, arguments.has("force"), diagnostics);
  }
  diagnostics.throw_if_errors();
}

void write_file_in_pieces(const std::string& file, bool replace, const MakePieces& make,
                          Diagnostics& diagnostics) {
  if (!may_write(file, replace, diagnostics)) return;
  std::error_code ignored;
  const fs::file_status now = fs::status(file, ignored);
  const int reason = fs::is_regular_file(now) || now.type() == fs::file_type::not_found
                         ? replace_file(behind_links(file), now, make)
                         : write_through(file, make);
  if (reason != 0) cannot_write(file, reason, diagnostics);
}

void write_text_file(const std::string& file, const std::string& text, bool replace,
                     Diagnostics& diagnostics) {
  write_file_in_pieces(
      file, replace, [&text](const TakePiece& take) { take(text); }, diagnostics);
}

}  // namespace stagecraft
