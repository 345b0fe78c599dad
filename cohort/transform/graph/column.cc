#include "cohort/transform/graph/column.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/graph/make_node.h"

namespace cohort::transform {

namespace {

std::shared_ptr<const internal::TransformNode> constant(const keras::Config& attributes) {
  return internal::make_node("constant", attributes, {});
}

}  // namespace

Column::Column(double number) : node_(constant(keras::Config().set("value", number))) {}
Column::Column(int64_t number) : node_(constant(keras::Config().set("value", number))) {}
Column::Column(std::string_view text) : node_(constant(keras::Config().set("value", text))) {}

const internal::ColumnType& Column::type() const {
  if (node_ != nullptr) return node_->type;
  throw FailedPreconditionError("the transform::Column holds nothing yet");
}
LeafType Column::dtype() const { return type().dtype; }
bool Column::is_ragged() const { return type().is_ragged(); }

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

}  // namespace cohort::transform
