#include "cohort/transform/graph/operations.h"

#include <ATen/ops/equal.h>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

MakeEvaluation find_operation(std::string_view name) {
  for (const auto list : {numeric_operations(), string_operations(), row_operations(),
                          lookup_operations(), mapped_functions()}) {
    for (const NamedOperation& operation : list) {
      if (operation.name == name) return operation.make;
    }
  }
  throw InvalidArgumentError(
      str("this version of Cohort has no operation ", quoted(name), "; a later one wrote it?"));
}

DType dtype_of_name(const std::string& name) {
  for (const DType dtype : {at::kFloat, at::kDouble, at::kLong, at::kInt, at::kShort, at::kChar,
                            at::kByte, at::kBool, at::kHalf, at::kBFloat16}) {
    if (dtype_name(dtype) == name) return dtype;
  }
  throw InvalidArgumentError(str("no dtype is called ", quoted(name)));
}

void take_inputs(std::span<const ColumnType> inputs, size_t count) {
  if (inputs.size() == count) return;
  throw InvalidArgumentError(str("it takes ", count, count == 1 ? " column" : " columns"));
}

void take_numbers(std::span<const ColumnType> inputs) {
  for (const ColumnType& input : inputs) {
    if (input.is_string() || input.kind == ColumnKind::kVocabulary) {
      throw InvalidArgumentError("it takes numbers; transform::to_number makes them of strings");
    }
  }
}

void take_strings(const ColumnType& input) {
  if (input.is_string() && input.kind != ColumnKind::kVocabulary) return;
  throw InvalidArgumentError("it takes strings; transform::as_string makes them of numbers");
}

void take_ragged(const ColumnType& input) {
  if (input.is_ragged()) return;
  throw InvalidArgumentError(
      "it takes a ragged column, as transform::split and VarLenFeatures give");
}

void take_matching(std::span<const ColumnType> inputs) {
  const ColumnType* first = nullptr;
  for (const ColumnType& input : inputs) {
    if (input.is_statistic()) continue;
    if (first == nullptr) first = &input;
    if (input.is_ragged() != first->is_ragged()) {
      throw InvalidArgumentError(
          "a ragged column has other elements than a dense one; transform::to_dense fills it up");
    }
    if (input.shape.size() != first->shape.size()) {
      throw InvalidArgumentError(
          "columns with different numbers of dimensions; use transform::reshape");
    }
  }
  if (first == nullptr) return;
  for (const ColumnType& input : inputs) {
    if (input.is_statistic() && input.shape.size() > first->shape.size()) {
      throw InvalidArgumentError("a statistic has more dimensions than a row of the column");
    }
  }
}

Tensor common_row_splits(std::span<const ColumnValue> inputs) {
  Tensor splits;
  for (const ColumnValue& input : inputs) {
    if (!input.is_ragged()) continue;
    if (!splits.defined()) {
      splits = input.row_splits;
    } else if (!splits.is_same(input.row_splits) && !at::equal(splits, input.row_splits)) {
      throw InvalidArgumentError("the rows of ragged columns hold different numbers of values");
    }
  }
  return splits;
}

}  // namespace cohort::internal
