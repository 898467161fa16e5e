#include "sim/study/row_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

void refuse(Diagnostics& diagnostics, SourceLocation where, std::string code, std::string message,
            std::string hint = {}) {
  diagnostics.error({.code = std::move(code),
                     .where = std::move(where),
                     .message = std::move(message),
                     .hint = std::move(hint)});
}

std::string last_error() {
  return std::strerror(errno);
}

// Calls `line` for each complete line; returns the bytes of those lines. nullopt when one is refused or
// reading fails.
std::optional<std::int64_t> read_lines(
    int descriptor, const std::string& file,
    const std::function<std::optional<std::string>(const std::string&)>& line, Diagnostics& diagnostics) {
  std::string pending;
  std::int64_t whole = 0;
  int number = 0;
  char block[1 << 16];
  for (;;) {
    const ssize_t got = ::read(descriptor, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      refuse(diagnostics, {.file = file}, "unreadable-file", "cannot be read: " + last_error());
      return std::nullopt;
    }
    if (got == 0) return whole;  // the pending rest is a torn line
    pending.append(block, static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end = pending.find('\n'); end != std::string::npos; end = pending.find('\n', begin)) {
      ++number;
      if (auto why = line(pending.substr(begin, end - begin))) {
        refuse(diagnostics, {.file = file, .line = number}, "other-sweep", *std::move(why),
               "it was left as it is: name another file");
        return std::nullopt;
      }
      whole += static_cast<std::int64_t>(end + 1 - begin);
      begin = end + 1;
    }
    pending.erase(0, begin);
  }
}

}  // namespace

std::optional<RowFile> RowFile::create(const std::string& file, bool replace, Diagnostics& diagnostics) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (replace ? O_TRUNC : O_EXCL);
  const int descriptor = ::open(file.c_str(), flags, 0666);
  if (descriptor >= 0) return RowFile(descriptor, 0);
  if (errno == EEXIST)
    refuse(diagnostics, {.file = file}, "exists", "exists and is left as it is",
           "--resume goes on with it, --force replaces it");
  else
    refuse(diagnostics, {.file = file}, "cannot-write", "cannot be written: " + last_error());
  return std::nullopt;
}

std::optional<RowFile> RowFile::resume(
    const std::string& file, const std::function<std::optional<std::string>(const std::string&)>& line,
    Diagnostics& diagnostics) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    refuse(diagnostics, {.file = file}, "cannot-write", "cannot be written: " + last_error());
    return std::nullopt;
  }
  RowFile rows(descriptor, 0);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    refuse(diagnostics, {.file = file}, "not-a-file",
           "is no ordinary file, so there is nothing to go on with");
    return std::nullopt;
  }
  const std::optional<std::int64_t> whole = read_lines(descriptor, file, line, diagnostics);
  if (!whole) return std::nullopt;
  rows.size_ = *whole;
  if (::ftruncate(descriptor, *whole) != 0 || ::lseek(descriptor, *whole, SEEK_SET) < 0) {
    refuse(diagnostics, {.file = file}, "cannot-write", "cannot be written: " + last_error());
    return std::nullopt;
  }
  return rows;
}

RowFile::RowFile(RowFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

RowFile& RowFile::operator=(RowFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

RowFile::~RowFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::optional<std::string> RowFile::append(std::string_view line) {
  SC_CHECK(line.find('\n') == std::string_view::npos, "a row is one line");
  const std::string text = std::string(line) + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      std::string why = last_error();
      // Where even this fails the torn line stays, and --resume cuts it off.
      if (::ftruncate(descriptor_, size_) == 0) ::lseek(descriptor_, size_, SEEK_SET);
      return why;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  size_ += static_cast<std::int64_t>(text.size());
  return std::nullopt;
}

std::optional<std::string> RowFile::sync() {
  if (::fsync(descriptor_) == 0 || errno == EINVAL || errno == EROFS) return std::nullopt;  // no disk: a pipe
  return last_error();
}

}  // namespace stagecraft
