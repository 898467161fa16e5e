#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <streambuf>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/command_line/trace_stream.hpp"

namespace stagecraft {
namespace {

struct CloseGzip {
  void operator()(gzFile file) const { gzclose_r(file); }
};
using GzipFile = std::unique_ptr<gzFile_s, CloseGzip>;

// zlib hands on what is not compressed as it stands.
class GzipBuffer : public std::streambuf {
 public:
  explicit GzipBuffer(gzFile file) : file_(file), chunk_(kChunk) {}

  // What zlib says of the file; empty: nothing.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 protected:
  int_type underflow() override {
    const int got = gzread(file_, chunk_.data(), static_cast<unsigned>(kChunk));
    if (got <= 0) {
      int code = Z_OK;
      const char* said = gzerror(file_, &code);
      if (code == Z_ERRNO) said = std::strerror(errno);
      if (code != Z_OK) problem_ = said;
      return traits_type::eof();
    }
    setg(chunk_.data(), chunk_.data(), chunk_.data() + got);
    return traits_type::to_int_type(*gptr());
  }

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 18;
  gzFile file_;
  std::vector<char> chunk_;
  std::string problem_;
};

}  // namespace

void with_trace_stream(const std::string& file, Diagnostics& diagnostics,
                       const std::function<void(std::istream&)>& read) {
  const auto refuse = [&](std::string code, std::string message) {
    diagnostics.error(
        {.code = std::move(code), .where = {file, 0, 0}, .message = std::move(message), .hint = {}});
  };
  std::error_code ignored;
  if (file != "-" && std::filesystem::is_directory(file, ignored))
    return refuse("is-directory", "is a directory");
  const int handle = file == "-" ? dup(STDIN_FILENO) : open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const GzipFile opened(handle < 0 ? nullptr : gzdopen(handle, "rb"));
  if (!opened) {
    const int error = errno;
    if (handle >= 0) close(handle);
    return refuse("cannot-open", fmt::format("cannot be opened: {}", std::strerror(error)));
  }
  GzipBuffer buffer(opened.get());
  std::istream in(&buffer);
  read(in);
  if (!buffer.problem().empty())
    refuse("bad-gzip", fmt::format("is compressed, and damaged or cut off: {}", buffer.problem()));
}

}  // namespace stagecraft
