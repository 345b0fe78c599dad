// The values of a numeric column, as accumulators of numbers read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/transform/analysis/analyses.h"
#include "cohort/transform/analysis/exact_sum.h"

namespace cohort::internal {

// Errors: InvalidArgument (row_splits that do not fit the values and rows, values [rows, ..] else).
void check_rows(const ColumnBatch& column);

// Whether rows may have this shape: sizes of at least 0, and 2^20 positions at most, because each
// has a state of up to 2 KiB.
bool has_possible_features(const std::vector<int64_t>& shape);

// float32 of float16 and bfloat16, int32 of shorter integers, else the dtype itself.
DType computed_dtype(DType dtype);

// A batch of values of one of computed_dtype()'s types, row-major [rows, features].
struct NumericValues {
  Tensor tensor;  // whose memory holds them in order
  int64_t rows = 0;
  int64_t features = 0;
};

// What all batches of a column have in common: known from its options, else from the first batch.
// Thread safety: none.
class NumericForm {
 public:
  // Errors: InvalidArgument (a dtype that has no analyses).
  explicit NumericForm(const NumericOptions& options);

  // The values of a batch, which must have this form; where dimensions are reduced, of one feature.
  // Errors: InvalidArgument (another dtype or shape, ragged values where dimensions are kept).
  NumericValues take(const ColumnBatch& column);
  // Errors: InvalidArgument (other rows than these).
  void join(const NumericForm& other);

  DType dtype() const { return dtype_.value_or(float32); }
  bool is_floating() const { return isFloatingType(dtype()); }
  // The shape of a row; [] where dimensions are reduced, or nothing is known.
  std::vector<int64_t> shape() const { return shape_.value_or(std::vector<int64_t>()); }
  size_t num_features() const;

  // A result of this shape and dtype.
  Leaf result(const std::vector<double>& values, DType dtype) const;
  Leaf result(const std::vector<int64_t>& values, DType dtype) const;

  // The form as bytes. Errors of join_saved: DataLoss.
  std::string saved() const;
  void join_saved(std::string_view bytes, std::string_view what);

 private:
  bool reduced_;
  std::optional<DType> dtype_;
  std::optional<std::vector<int64_t>> shape_;
};

// The format of float results of this dtype.
FloatForm float_form(DType dtype);

// Calls visit(const T*) for the type of the values: float, double, int32_t or int64_t.
template <class Visit>
void visit_values(const NumericValues& values, Visit&& visit) {
  switch (values.tensor.scalar_type()) {
    case float32:
      return visit(values.tensor.data_ptr<float>());
    case float64:
      return visit(values.tensor.data_ptr<double>());
    case int32:
      return visit(values.tensor.data_ptr<int32_t>());
    default:
      return visit(values.tensor.data_ptr<int64_t>());
  }
}

}  // namespace cohort::internal
