#include "sim/view/sweep_page.hpp"

#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"

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

std::string SweepPage::html(const PageHead& head) const {
  JsonWriter json;
  begin_page(json, "sweep", head);
  json.field("points", points_).key("columns").begin_array();
  for (const RowColumn& column : columns_)
    json.begin_object()
        .field("name", column.name)
        .field("varied", column.kind == RowColumn::Kind::kVaried)
        .end_object();
  json.end_array().end_object();
  return html_page(
      PageContent{.title = head.title, .json = with_member(json, "rows", "[" + join(rows_, ",\n") + "]")});
}

}  // namespace stagecraft
