#include "cohort/core/structure/sparse_tensor.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/full.h>

#include <ostream>
#include <utility>

#include "cohort/core/structure/composite.h"

namespace cohort {
namespace {

using internal::str;

void check_form(const Tensor& indices, const Tensor& values, const std::vector<int64_t>& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  const bool fits = indices.defined() && values.defined() && indices.scalar_type() == int64 &&
                    indices.dim() == 2 && indices.size(1) == rank && values.dim() == 1 &&
                    values.size(0) == indices.size(0);
  if (!fits) {
    throw InvalidArgumentError(str("SparseTensor: indices are ", internal::describe(indices),
                                   " and values ", internal::describe(values),
                                   "; of the dense_shape ", internal::shape_str(shape),
                                   " they must be int64 [n, ", rank, "] and [n]"));
  }
  for (const int64_t size : shape) {
    if (size >= 0) continue;
    throw InvalidArgumentError(
        str("SparseTensor: the dense_shape ", internal::shape_str(shape), " has a size below 0"));
  }
}

void check_indices(const Tensor& indices, const std::vector<int64_t>& shape) {
  const Tensor on_cpu = indices.cpu().contiguous();
  const auto* index = on_cpu.data_ptr<int64_t>();
  const auto rank = static_cast<int64_t>(shape.size());
  for (int64_t i = 0; i < on_cpu.size(0); ++i) {
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t at = index[i * rank + d];
      if (at >= 0 && at < shape[static_cast<size_t>(d)]) continue;
      throw InvalidArgumentError(str("SparseTensor: index ", i, " is ", at, " in dimension ", d,
                                     ", outside of the dense_shape ", internal::shape_str(shape)));
    }
  }
}

const Tensor& checked_coo(const Tensor& coo) {
  if (coo.defined() && coo.layout() == at::kSparse) return coo;
  throw InvalidArgumentError(
      str("expected a tensor in COO layout, but got ", internal::describe(coo)));
}

const Tensor& coo_of(const Structure& structure) {
  const bool is_one = internal::composite_kind(structure) == internal::Composite::kSparse ||
                      (structure.is_leaf() && structure.leaf().is_tensor());
  if (is_one) return structure.tensor();
  throw InvalidArgumentError(str("expected a SparseTensor, but got ", structure));
}

}  // namespace

SparseTensor::SparseTensor(const Tensor& indices, const Tensor& values,
                           std::vector<int64_t> dense_shape) {
  check_form(indices, values, dense_shape);
  check_indices(indices, dense_shape);
  coo_ = at::_sparse_coo_tensor_unsafe(indices.t(), values, dense_shape);
}

SparseTensor SparseTensor::from_dense(const Tensor& dense) {
  if (!dense.defined()) throw InvalidArgumentError("SparseTensor: the tensor is undefined");
  return SparseTensor(dense.to_sparse());
}

SparseTensor::SparseTensor(Tensor coo) : coo_(checked_coo(coo)) {}

SparseTensor::SparseTensor(const Structure& structure) : SparseTensor(coo_of(structure)) {}

SparseTensor::operator Structure() const { return sparse_structure(coo_); }

Tensor SparseTensor::indices() const { return coo_._indices().t(); }

Tensor SparseTensor::values() const { return coo_._values(); }

Tensor SparseTensor::to_dense(double default_value) const {
  if (default_value == 0) return coo_.to_dense();
  const Tensor sorted = coo_.is_coalesced() ? coo_ : coo_.coalesce();
  if (sorted._nnz() != coo_._nnz()) {
    throw InvalidArgumentError(str("SparseTensor: of ", coo_._nnz(), " indices only ",
                                   sorted._nnz(),
                                   " differ; with a default_value each must come once"));
  }
  const Tensor dense = at::full(coo_.sizes(), default_value, coo_._values().options());
  if (sorted._nnz() == 0) return dense;
  c10::List<c10::optional<Tensor>> places;
  for (const Tensor& dimension : sorted._indices().unbind(0)) places.push_back(dimension);
  return dense.index_put(places, sorted._values());
}

std::ostream& operator<<(std::ostream& out, const SparseTensor& tensor) {
  return out << "SparseTensor(indices=" << Structure(tensor.indices())
             << ", values=" << Structure(tensor.values())
             << ", dense_shape=" << internal::shape_str(tensor.dense_shape()) << ')';
}

Structure sparse_structure(const Tensor& coo) {
  return Structure::make_dict({{internal::kSparse, checked_coo(coo)}});
}

}  // namespace cohort
