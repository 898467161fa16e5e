// A file of rows that only ever grows by whole lines: after a kill at any moment it holds finished rows and
// at most one torn line at its end, which the next one to open it cuts off.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"

namespace stagecraft {

class RowFile {
 public:
  // A new file; an existing one is refused unless it shall be replaced. Reports.
  [[nodiscard]] static std::optional<RowFile> create(const std::string& file, bool replace,
                                                     Diagnostics& diagnostics);
  // Keeps an existing file and passes its lines (without line ends) to `line` in order; creates the file
  // where there is none. `line` returns why a line does not belong here, or nothing. A refused file is left
  // unchanged.
  [[nodiscard]] static std::optional<RowFile> resume(
      const std::string& file, const std::function<std::optional<std::string>(const std::string&)>& line,
      Diagnostics& diagnostics);

  RowFile(RowFile&& other) noexcept;
  RowFile& operator=(RowFile&& other) noexcept;
  ~RowFile();

  // Appends a line and its end, completely or not at all. Returns the reason when the disk refuses; earlier
  // lines are untouched.
  [[nodiscard]] std::optional<std::string> append(std::string_view line);
  // Flushes to disk. Returns the reason when that fails.
  [[nodiscard]] std::optional<std::string> sync();

 private:
  RowFile(int descriptor, std::int64_t size) : descriptor_(descriptor), size_(size) {}
  int descriptor_ = -1;
  std::int64_t size_ = 0;  // bytes of complete lines
};

}  // namespace stagecraft
