#include "cohort/transform/analysis/numeric_column.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <limits>

#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

bool is_numeric(DType dtype) {
  switch (dtype) {
    case DType::Byte:
    case DType::Char:
    case DType::Short:
    case DType::Int:
    case DType::Long:
    case DType::Half:
    case DType::BFloat16:
    case DType::Float:
    case DType::Double:
      return true;
    default:
      return false;
  }
}

void check_numeric(DType dtype) {
  if (!is_numeric(dtype)) {
    throw InvalidArgumentError(
        str("it takes integers of up to 64 bits and floating point numbers, "
            "but got ",
            dtype_name(dtype), "; convert the column first"));
  }
}

struct SavedForm {
  std::optional<uint32_t> dtype;
  bool knows_shape = false;
  std::vector<int64_t> shape;
};
void fields(auto& f, SavedForm& saved) {
  f(1, saved.dtype);
  f(2, saved.knows_shape);
  f(3, saved.shape);
}

template <class Number>
Leaf tensor_of(std::vector<Number> values, const std::vector<int64_t>& shape, DType from,
               DType to) {
  return at::from_blob(values.data(), shape, at::TensorOptions(from)).to(to).clone();
}

}  // namespace

void check_rows(const ColumnBatch& column) {
  const std::vector<int64_t> sizes = column.values.sizes();
  if (!column.row_splits) {
    if (!sizes.empty() && sizes[0] == column.rows) return;
    throw InvalidArgumentError(str("a batch of ", column.rows, " rows has values of shape ",
                                   shape_str(sizes), "; dimension 0 counts the rows"));
  }
  const Tensor& splits = *column.row_splits;
  if (splits.scalar_type() != int64 || splits.dim() != 1 || splits.size(0) != column.rows + 1 ||
      sizes.empty()) {
    throw InvalidArgumentError(str("a ragged batch of ", column.rows, " rows has row_splits ",
                                   describe(splits), "; they are int64 [rows + 1]"));
  }
  const Tensor in_order = contiguous_elements(splits);
  const auto* ends = in_order.data_ptr<int64_t>();
  if (ends[0] != 0 || ends[column.rows] != sizes[0] ||
      !std::is_sorted(ends, ends + column.rows + 1)) {
    throw InvalidArgumentError(str("row_splits of a ragged batch are to ascend from 0 to ",
                                   sizes[0], ", the number of its values"));
  }
}

bool has_possible_features(const std::vector<int64_t>& shape) {
  constexpr int64_t kMostFeatures = 1 << 20;
  int64_t features = 1;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(features, size, &features)) return false;
  }
  return features <= kMostFeatures;
}

DType computed_dtype(DType dtype) {
  switch (dtype) {
    case DType::Half:
    case DType::BFloat16:
      return float32;
    case DType::Byte:
    case DType::Char:
    case DType::Short:
      return int32;
    default:
      return dtype;
  }
}

FloatForm float_form(DType dtype) {
  switch (dtype) {
    case DType::Half:
      return kFloat16Form;
    case DType::BFloat16:
      return kBfloat16Form;
    case DType::Double:
      return kFloat64Form;
    default:
      return kFloat32Form;
  }
}

NumericForm::NumericForm(const NumericOptions& options)
    : reduced_(options.reduce_instance_dims), dtype_(options.dtype) {
  if (dtype_) check_numeric(*dtype_);
}

size_t NumericForm::num_features() const {
  size_t features = 1;
  for (const int64_t size : shape()) features *= static_cast<size_t>(size);
  return features;
}

NumericValues NumericForm::take(const ColumnBatch& column) {
  check_rows(column);
  if (column.values.is_strings()) {
    throw InvalidArgumentError("it takes numbers, but got strings; convert the column first");
  }
  const Tensor& values = column.values.tensor();
  check_numeric(values.scalar_type());
  if (dtype_ && *dtype_ != values.scalar_type()) {
    throw InvalidArgumentError(str("its input is ", dtype_name(*dtype_), ", but a batch has ",
                                   dtype_name(values.scalar_type())));
  }
  dtype_ = values.scalar_type();
  NumericValues taken = {contiguous_elements(values.to(computed_dtype(*dtype_))), values.numel(),
                         1};
  if (reduced_) return taken;
  if (column.row_splits) {
    throw InvalidArgumentError(
        "ragged rows have no common shape; reduce their instance dimensions");
  }
  std::vector<int64_t> shape(values.sizes().begin() + 1, values.sizes().end());
  if (shape_ && *shape_ != shape) {
    throw InvalidArgumentError(str("rows before this batch have shape ", shape_str(*shape_),
                                   ", but its rows have ", shape_str(shape)));
  }
  if (!has_possible_features(shape)) {
    throw InvalidArgumentError(str("rows of shape ", shape_str(shape),
                                   " have more than 2^20 positions; reduce instance dimensions"));
  }
  shape_ = std::move(shape);
  taken.features = static_cast<int64_t>(num_features());
  taken.rows = column.rows;
  return taken;
}

void NumericForm::join(const NumericForm& other) {
  if (dtype_ && other.dtype_ && *dtype_ != *other.dtype_) {
    throw InvalidArgumentError(str("parts of ", dtype_name(*dtype_), " and of ",
                                   dtype_name(*other.dtype_), " cannot be merged"));
  }
  if (shape_ && other.shape_ && *shape_ != *other.shape_) {
    throw InvalidArgumentError(str("parts with rows of shape ", shape_str(*shape_), " and of ",
                                   shape_str(*other.shape_), " cannot be merged"));
  }
  if (!dtype_) dtype_ = other.dtype_;
  if (!shape_) shape_ = other.shape_;
}

Leaf NumericForm::result(const std::vector<double>& values, DType dtype) const {
  return tensor_of(values, shape(), float64, dtype);
}
Leaf NumericForm::result(const std::vector<int64_t>& values, DType dtype) const {
  return tensor_of(values, shape(), int64, dtype);
}

std::string NumericForm::saved() const {
  SavedForm saved;
  if (dtype_) saved.dtype = static_cast<uint32_t>(*dtype_);
  saved.knows_shape = shape_.has_value();
  saved.shape = shape();
  return encode_fields(saved);
}

void NumericForm::join_saved(std::string_view bytes, std::string_view what) {
  const auto saved = decode_fields<SavedForm>(bytes, what);
  const WireReader reader(bytes, what);
  NumericForm other({.dtype = std::nullopt, .reduce_instance_dims = reduced_});
  if (saved.dtype) {
    const auto dtype = static_cast<DType>(*saved.dtype);
    if (*saved.dtype > INT8_MAX || !is_numeric(dtype))
      reader.fail("names a dtype that has no analyses");
    other.dtype_ = dtype;
  }
  if (saved.knows_shape) {
    if (reduced_) reader.fail("has a shape, though instance dimensions are reduced");
    if (!has_possible_features(saved.shape)) reader.fail("has an impossible shape");
    other.shape_ = saved.shape;
  }
  try {
    join(other);
  } catch (const InvalidArgumentError& error) {
    reader.fail(error.what());
  }
}

}  // namespace cohort::internal
