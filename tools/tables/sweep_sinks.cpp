#include "tools/tables/sweep_sinks.hpp"

#include <ostream>

namespace stagecraft {

AppendLine to_stream(std::ostream& out) {
  return [&out](const std::string& line) -> std::optional<std::string> {
    if (out << line << '\n' << std::flush) return std::nullopt;
    return "standard output could not be written";
  };
}

std::optional<std::string> CsvSink::add(const RowDocument& row) {
  if (!begun_)
    if (auto why = append_(csv_header(columns_))) return why;
  begun_ = true;
  return append_(csv_line(row, columns_));
}

}  // namespace stagecraft
