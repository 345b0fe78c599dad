#include "cohort/distribute/variables/scatter.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <c10/core/ScalarType.h>

#include <algorithm>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

// Whether values have the indices' shape, then that of a row, as TensorFlow wants it.
bool values_fit(const Tensor& values, const Tensor& indices, at::IntArrayRef shape) {
  std::vector<int64_t> expected = indices.sizes().vec();
  expected.insert(expected.end(), shape.begin() + 1, shape.end());
  return values.sizes() == at::IntArrayRef(expected);
}

void check_indices(const Tensor& indices, int64_t rows, const char* operation,
                   const std::string& name) {
  const int64_t* values = indices.data_ptr<int64_t>();
  for (int64_t i = 0; i < indices.numel(); ++i) {
    if (values[i] >= 0 && values[i] < rows) continue;
    throw InvalidArgumentError(str(operation, " of variable '", name, "': indices[", i,
                                   "] = ", values[i], " is not in [0, ", rows, ")"));
  }
}

bool has_duplicates(const Tensor& indices) {
  Tensor sorted = indices.clone(at::MemoryFormat::Contiguous);
  int64_t* begin = sorted.data_ptr<int64_t>();
  int64_t* end = begin + sorted.numel();
  std::sort(begin, end);
  return std::adjacent_find(begin, end) != end;
}

Tensor combine(ScatterOp op, const Tensor& rows, const Tensor& values) {
  switch (op) {
    case ScatterOp::kMin:
      return at::minimum(rows, values);
    case ScatterOp::kMax:
      return at::maximum(rows, values);
    case ScatterOp::kMul:
      return rows.mul(values);
    case ScatterOp::kDiv:
      return at::isFloatingType(rows.scalar_type()) || rows.is_complex()
                 ? rows.div(values)
                 : rows.div(values, "trunc");
    default:
      return values;
  }
}

}  // namespace

const char* scatter_name(ScatterOp op) {
  switch (op) {
    case ScatterOp::kAdd:
      return "scatter_add";
    case ScatterOp::kSub:
      return "scatter_sub";
    case ScatterOp::kUpdate:
      return "scatter_update";
    case ScatterOp::kMin:
      return "scatter_min";
    case ScatterOp::kMax:
      return "scatter_max";
    case ScatterOp::kMul:
      return "scatter_mul";
    case ScatterOp::kDiv:
      return "scatter_div";
  }
  return "scatter";
}

IndexedSlices checked_slices(const IndexedSlices& slices, at::IntArrayRef shape, DType dtype,
                             const char* operation, const std::string& name) {
  const Tensor& indices = slices.indices;
  const Tensor& values = slices.values;
  if (shape.empty()) {
    throw InvalidArgumentError(
        str(operation, " of variable '", name, "', which has rank 0 and no rows; use assign"));
  }
  const bool whole = indices.defined() && indices.layout() == at::kStrided &&
                     at::isIntegralType(indices.scalar_type(), false);
  const bool dense = values.defined() && values.layout() == at::kStrided;
  if (!whole || !dense || !c10::canCast(values.scalar_type(), dtype) ||
      !values_fit(values, indices, shape)) {
    throw InvalidArgumentError(
        str(operation, " of variable '", name, "', which is ", dtype_name(dtype), " ",
            shape_str(shape), ": indices are ", describe(indices), " and values ", describe(values),
            "; pass dense indices of whole numbers [n] and dense values [n, row..]"));
  }
  std::vector<int64_t> flat(shape.begin(), shape.end());
  flat[0] = indices.numel();
  IndexedSlices checked = {values.detach().to(dtype).reshape(flat),
                           indices.detach().to(at::kCPU, int64).reshape({-1}).contiguous()};
  check_indices(checked.indices, shape[0], operation, name);
  return checked;
}

void scatter_rows(const Tensor& target, ScatterOp op, const IndexedSlices& slices) {
  at::NoGradGuard no_grad;
  const Tensor indices = slices.indices.to(target.device());
  const Tensor values = slices.values.to(target.device());
  if (op == ScatterOp::kAdd || op == ScatterOp::kSub) {
    target.index_add_(0, indices, values, op == ScatterOp::kAdd ? 1 : -1);
  } else if (!has_duplicates(slices.indices)) {
    target.index_copy_(0, indices, combine(op, target.index_select(0, indices), values));
  } else {
    const int64_t* row = slices.indices.data_ptr<int64_t>();
    for (int64_t i = 0; i < indices.numel(); ++i) {
      const Tensor place = target.select(0, row[i]);
      place.copy_(combine(op, place, values.select(0, i)));
    }
  }
}

}  // namespace cohort::internal
