// Destinations of rows: standard output, as JSON lines or CSV. A table, a page and a database are sinks elsewhere.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/study/row_columns.hpp"

namespace stagecraft {

// Takes rows in grid order.
class RowSink {
 public:
  RowSink() = default;
  RowSink(const RowSink&) = delete;
  RowSink& operator=(const RowSink&) = delete;
  virtual ~RowSink() = default;
  // The reason when it cannot be kept: nothing more is sent then.
  [[nodiscard]] virtual std::optional<std::string> add(const RowDocument& row) = 0;
  [[nodiscard]] virtual std::optional<std::string> finish() { return std::nullopt; }
};

// Writes one more line, of JSON or CSV. The reason when it cannot be written.
using AppendLine = std::function<std::optional<std::string>(const std::string& line)>;
[[nodiscard]] AppendLine to_stream(std::ostream& out);

// CSV with a header before the first row.
class CsvSink : public RowSink {
 public:
  CsvSink(std::vector<RowColumn> columns, AppendLine append)
      : columns_(std::move(columns)), append_(std::move(append)) {}
  [[nodiscard]] std::optional<std::string> add(const RowDocument& row) override;

 private:
  std::vector<RowColumn> columns_;
  AppendLine append_;
  bool begun_ = false;
};

}  // namespace stagecraft
