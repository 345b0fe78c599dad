#include "cohort/transform/graph/column.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/graph/node.h"

namespace cohort::transform {

using internal::apply;
using internal::node_of;
using keras::Config;

Column::Column(double number) : Column(apply("constant", Config().set("value", number), {})) {}
Column::Column(int64_t number) : Column(apply("constant", Config().set("value", number), {})) {}
Column::Column(std::string_view text)
    : Column(apply("constant", Config().set("value", text), {})) {}

LeafType Column::dtype() const { return node_of(*this, "Column::dtype")->type.dtype; }
bool Column::is_ragged() const { return node_of(*this, "Column::is_ragged")->type.is_ragged(); }

Columns::Columns(std::initializer_list<std::pair<std::string, Column>> columns) {
  for (const auto& [name, column] : columns) {
    if (contains(name)) {
      throw InvalidArgumentError(
          internal::str("column ", internal::quoted(name), " is given twice"));
    }
    columns_.emplace_back(name, column);
  }
}

bool Columns::contains(std::string_view name) const {
  for (const auto& column : columns_) {
    if (column.first == name) return true;
  }
  return false;
}

const Column& Columns::operator[](std::string_view name) const {
  std::string names;
  for (const auto& column : columns_) {
    if (column.first == name) return column.second;
    names += (names.empty() ? "" : ", ") + internal::quoted(column.first);
  }
  throw NotFoundError(internal::str("there is no column ", internal::quoted(name),
                                    "; there are: ", names.empty() ? "none" : names));
}

Column& Columns::operator[](std::string_view name) {
  for (auto& column : columns_) {
    if (column.first == name) return column.second;
  }
  columns_.emplace_back(name, Column());
  return columns_.back().second;
}

Column operator+(const Column& x, const Column& y) { return apply("add", {}, {x, y}); }
Column operator-(const Column& x, const Column& y) { return apply("subtract", {}, {x, y}); }
Column operator*(const Column& x, const Column& y) { return apply("multiply", {}, {x, y}); }
Column operator/(const Column& x, const Column& y) { return apply("divide", {}, {x, y}); }
Column operator-(const Column& x) { return apply("negative", {}, {x}); }
Column operator==(const Column& x, const Column& y) { return apply("equal", {}, {x, y}); }
Column operator!=(const Column& x, const Column& y) { return apply("not_equal", {}, {x, y}); }
Column operator<(const Column& x, const Column& y) { return apply("less", {}, {x, y}); }
Column operator<=(const Column& x, const Column& y) { return apply("less_equal", {}, {x, y}); }
Column operator>(const Column& x, const Column& y) { return apply("greater", {}, {x, y}); }
Column operator>=(const Column& x, const Column& y) { return apply("greater_equal", {}, {x, y}); }
Column operator&(const Column& x, const Column& y) { return apply("logical_and", {}, {x, y}); }
Column operator|(const Column& x, const Column& y) { return apply("logical_or", {}, {x, y}); }
Column operator!(const Column& x) { return apply("logical_not", {}, {x}); }

}  // namespace cohort::transform
