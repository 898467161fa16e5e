#include "sim/view/sweep_page.hpp"

#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "sim/view/page.hpp"

namespace stagecraft {

SweepPage::SweepPage(std::vector<RowColumn> columns) : columns_(std::move(columns)) {}

void SweepPage::add(const RowDocument& row) {
  ++points_;
  if (rows_.size() == kMostPoints) return;
  std::string values;
  for (const RowColumn& column : columns_) {
    const Cell cell = cell_of(row, column);
    std::string value = "null";
    if (cell.kind == Cell::Kind::kNumber) value = cell.text;
    if (cell.kind == Cell::Kind::kText) {
      JsonWriter json;
      json.value(cell.text);
      value = json.str();
    }
    values += (values.empty() ? "" : ",") + value;
  }
  rows_.push_back("[" + values + "]");
}

std::string SweepPage::html(const std::string& title, const std::string& command,
                            const std::string& version) const {
  JsonWriter json;
  json.begin_object().field("kind", "sweep").field("title", title);
  json.field("command", command).field("version", version);
  json.field("points", points_).key("columns").begin_array();
  for (const RowColumn& column : columns_)
    json.begin_object()
        .field("name", column.name)
        .field("varied", column.kind == RowColumn::Kind::kVaried)
        .end_object();
  json.end_array().end_object();
  return html_page(
      PageContent{.title = title, .json = with_member(json, "rows", "[" + join(rows_, ",\n") + "]")});
}

}  // namespace stagecraft
