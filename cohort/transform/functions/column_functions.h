// Functions on the elements of columns, beside the operators of Column.
//
//   outputs["income"] = transform::log1p(transform::to_dense(inputs["income"], {.number = 0}));
//   outputs["words"] = transform::split(transform::lower(inputs["text"]));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/transform/graph/column.h"

namespace cohort::transform {

// Errors of all: InvalidArgument (columns that they do not take; names the function),
// FailedPrecondition (a column that holds nothing).

// Element by element, as libtorch's functions of these names.
COHORT_API Column abs(const Column& x);
COHORT_API Column ceil(const Column& x);
COHORT_API Column exp(const Column& x);
COHORT_API Column floor(const Column& x);
COHORT_API Column log(const Column& x);
COHORT_API Column log1p(const Column& x);
COHORT_API Column round(const Column& x);
COHORT_API Column sigmoid(const Column& x);
COHORT_API Column sign(const Column& x);
COHORT_API Column sqrt(const Column& x);
COHORT_API Column tanh(const Column& x);
COHORT_API Column is_nan(const Column& x);
COHORT_API Column is_finite(const Column& x);
COHORT_API Column pow(const Column& x, const Column& y);
COHORT_API Column minimum(const Column& x, const Column& y);
COHORT_API Column maximum(const Column& x, const Column& y);
// condition: bool.
COHORT_API Column where(const Column& condition, const Column& x, const Column& y);
COHORT_API Column cast(const Column& x, DType dtype);

// Dense columns: another shape of a row, without the rows; columns [rows] and [rows, size] beside
// each other, [rows, sizes]; integers as rows with a 1 in their place, float32 [.., depth].
COHORT_API Column reshape(const Column& x, const std::vector<int64_t>& shape);
COHORT_API Column concat(const std::vector<Column>& columns);
COHORT_API Column one_hot(const Column& indices, int64_t depth);

struct ToDenseOptions {
  // What stands for missing values.
  double number = 0;
  std::string text = "";
  // Missing: a row has one value at most, and the result is [rows]. Else the result is
  // [rows, size].
  std::optional<int64_t> size = std::nullopt;
};
// Fills a ragged column up to a dense one. Errors of a batch: InvalidArgument (a row has more
// values).
COHORT_API Column to_dense(const Column& x, const ToDenseOptions& options = {});
// Makes a ragged column of a dense one, [rows] or [rows, size].
COHORT_API Column to_ragged(const Column& x);

// Strings one by one; letters are ASCII's, lengths and positions bytes.
COHORT_API Column lower(const Column& x);
COHORT_API Column upper(const Column& x);
COHORT_API Column strip(const Column& x);
COHORT_API Column substr(const Column& x, int64_t position, int64_t length);
COHORT_API Column replace(const Column& x, const std::string& from, const std::string& to);
COHORT_API Column string_length(const Column& x);  // int32
// The parts of a text [rows] between separators, ragged; "": between runs of white space.
COHORT_API Column split(const Column& x, const std::string& separator = "");
// The texts of several columns in one, or of a row's columns and a constant.
COHORT_API Column join(const std::vector<Column>& columns, const std::string& separator = "");
// Integers in decimal digits.
COHORT_API Column as_string(const Column& x);
struct ToNumberOptions {
  DType dtype = float32;  // or float64, int32, int64
  // What stands for texts that are no number. Missing: they are an error of the batch.
  std::optional<double> default_value = std::nullopt;
};
COHORT_API Column to_number(const Column& x, const ToNumberOptions& options = {});

}  // namespace cohort::transform
