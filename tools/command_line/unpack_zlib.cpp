#include <fmt/format.h>
#include <zlib.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/yaml.hpp"
#include "tools/command_line/unpack.hpp"

namespace stagecraft {
namespace {

// Inflates one gzip member after another, as gunzip does.
class Inflation {
 public:
  explicit Inflation(std::string& text) {
    stream_.next_in = reinterpret_cast<Bytef*>(text.data());
    stream_.avail_in = static_cast<uInt>(text.size());
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    SC_CHECK(inflateInit2(&stream_, kGzipOnly) == Z_OK, "zlib starts");
  }
  Inflation(const Inflation&) = delete;
  Inflation& operator=(const Inflation&) = delete;
  ~Inflation() { inflateEnd(&stream_); }

  // What is wrong with the text; empty: nothing.
  std::string unpack_to(std::string& out) {
    std::vector<char> chunk(std::size_t{1} << 18);
    for (;;) {
      stream_.next_out = reinterpret_cast<Bytef*>(chunk.data());
      stream_.avail_out = static_cast<uInt>(chunk.size());
      const int code = inflate(&stream_, Z_NO_FLUSH);
      out.append(chunk.data(), chunk.size() - stream_.avail_out);
      if (out.size() > kMaxYamlFileBytes)
        return fmt::format("is larger than {} MiB when unpacked", kMaxYamlFileBytes >> 20);
      if (code == Z_STREAM_END) {
        if (stream_.avail_in == 0) return {};
        if (inflateReset(&stream_) != Z_OK) return damaged("cannot go on");
      } else if (code != Z_OK) {
        return damaged(stream_.msg != nullptr ? stream_.msg : "unexpected end of file");
      }
    }
  }

 private:
  static std::string damaged(const char* why) {
    return fmt::format("is compressed, and damaged or cut off: {}", why);
  }
  z_stream stream_{};
};

}  // namespace

std::optional<std::string> unpacked(std::optional<std::string> text, const std::string& name,
                                    Diagnostics& diagnostics) {
  if (!text || !text->starts_with("\x1f\x8b")) return text;
  std::string plain;
  std::string problem = "is larger than 4 GiB";
  if (text->size() < std::size_t{1} << 32) problem = Inflation(*text).unpack_to(plain);
  if (problem.empty()) return plain;
  diagnostics.error({.code = "bad-gzip", .where = {name, 0, 0}, .message = std::move(problem), .hint = {}});
  return std::nullopt;
}

}  // namespace stagecraft
