#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>
#include <utility>

#include "tools/command_line/trace_stream.hpp"

namespace stagecraft {

void with_trace_stream(const std::string& file, Diagnostics& diagnostics,
                       const std::function<void(std::istream&)>& read) {
  const auto refuse = [&](std::string code, std::string message, std::string hint) {
    diagnostics.error({.code = std::move(code),
                       .where = {file, 0, 0},
                       .message = std::move(message),
                       .hint = std::move(hint)});
  };
  std::error_code ignored;
  if (file != "-" && std::filesystem::is_directory(file, ignored))
    return refuse("is-directory", "is a directory", {});
  std::ifstream opened;
  if (file != "-") opened.open(file, std::ios::binary);
  std::istream& in = file == "-" ? std::cin : opened;
  if (!in) return refuse("cannot-open", fmt::format("cannot be opened: {}", std::strerror(errno)), {});
  constexpr int kGzipFirst = 0x1f;
  if (in.peek() == kGzipFirst)
    return refuse("gzip", "is compressed with gzip, and this program was built without zlib",
                  "gunzip -c FILE | stagecraft … -");
  read(in);
}

}  // namespace stagecraft
