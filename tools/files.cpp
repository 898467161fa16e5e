#include "tools/files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <system_error>
#include <utility>

namespace stagecraft {
namespace {

void refuse(const std::string& file, std::string code, std::string message, std::string hint,
            Diagnostics& diagnostics) {
  diagnostics.error({.code = std::move(code),
                     .where = {file, 0, 0},
                     .message = std::move(message),
                     .hint = std::move(hint)});
}

}  // namespace

std::optional<std::string> read_text_file(const std::string& file, Diagnostics& diagnostics) {
  if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
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

void write_file_in_pieces(const std::string& file, bool replace,
                          const std::function<void(const TakePiece&)>& make, Diagnostics& diagnostics) {
  if (!replace && std::filesystem::exists(file)) {
    return refuse(file, "exists", "exists and is left as it is", "--force replaces it", diagnostics);
  }
  const std::string beside = file + ".part";
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  if (out) {
    make([&out](std::string_view piece) {
      out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    });
  }
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(beside, file, error);
  if (!out || error) {
    std::filesystem::remove(beside, error);
    refuse(file, "cannot-write", "cannot be written", "is there such a folder, and room on the disk?",
           diagnostics);
  }
}

void write_text_file(const std::string& file, const std::string& text, bool replace,
                     Diagnostics& diagnostics) {
  write_file_in_pieces(
      file, replace, [&text](const TakePiece& take) { take(text); }, diagnostics);
}

}  // namespace stagecraft
