#include "cohort/core/structure/ragged_tensor.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "cohort/core/structure/composite.h"

namespace cohort {
namespace {

using internal::Composite;
using internal::composite_kind;
using internal::str;

std::optional<std::string> form_problem(const Leaf& values, const Tensor& splits) {
  if (values.is_tensor() && !values.tensor().defined()) return "the values are undefined";
  if (values.dim() == 0) return "the values are a scalar; they need a dimension of rows' values";
  if (!splits.defined() || splits.scalar_type() != int64 || splits.dim() != 1 ||
      splits.size(0) == 0) {
    return str("row_splits are ", internal::describe(splits),
               "; they must be int64 [rows + 1] and begin with 0");
  }
  return std::nullopt;
}

std::string wrong_end(int64_t last_split, const Leaf& values) {
  return str("row_splits end with ", last_split, ", but there are ", values.sizes()[0], " values");
}

void check_splits(const Leaf& values, const Tensor& splits) {
  const auto refuse = [&](const std::string& problem) {
    throw InvalidArgumentError(str("RaggedTensor: ", problem));
  };
  if (const auto problem = form_problem(values, splits)) refuse(*problem);
  const Tensor on_cpu = splits.cpu().contiguous();
  const auto* split = on_cpu.data_ptr<int64_t>();
  const int64_t last = splits.size(0) - 1;
  if (split[0] != 0) refuse(str("row_splits begin with ", split[0], ", not with 0"));
  for (int64_t i = 0; i < last; ++i) {
    if (split[i + 1] >= split[i]) continue;
    refuse(str("row_splits must not fall, but row ", i, " ends at ", split[i + 1],
               ", before its begin at ", split[i]));
  }
  if (split[last] != values.sizes()[0]) refuse(wrong_end(split[last], values));
}

// For each value, the row that it is in and its place there.
std::pair<Tensor, Tensor> places_of(const Tensor& row_splits) {
  const Tensor splits = row_splits;
  const Tensor lengths = splits.slice(0, 1) - splits.slice(0, 0, -1);
  const Tensor rows = at::repeat_interleave(lengths);
  const Tensor columns = at::arange(rows.size(0), rows.options()) - splits.index_select(0, rows);
  return {rows, columns};
}

int64_t longest_of(const RaggedTensor& tensor) {
  return tensor.nrows() == 0 ? 0 : tensor.row_lengths().max().item<int64_t>();
}

std::vector<int64_t> dense_shape(const RaggedTensor& tensor) {
  std::vector<int64_t> shape = tensor.values().sizes().vec();
  shape[0] = longest_of(tensor);
  shape.insert(shape.begin(), tensor.nrows());
  return shape;
}

}  // namespace

std::optional<std::string> internal::ragged_problem(const Structure& ragged) {
  const Structure& values = ragged[0];
  const Structure& splits = ragged[1];
  if (!values.is_leaf() || !splits.is_leaf() || !splits.leaf().is_tensor()) {
    return "its values and row_splits must be tensors";
  }
  if (auto problem = form_problem(values.leaf(), splits.tensor())) return problem;
  // A device is not waited for: what is there came from a structure that was whole on the host.
  const Tensor& all = splits.tensor();
  if (!all.device().is_cpu()) return std::nullopt;
  const int64_t last = all.data_ptr<int64_t>()[(all.size(0) - 1) * all.stride(0)];
  if (last != values.leaf().sizes()[0]) return wrong_end(last, values.leaf());
  return std::nullopt;
}

RaggedTensor RaggedTensor::from_row_splits(const Leaf& values, const Tensor& row_splits) {
  check_splits(values, row_splits);
  return {values, row_splits};
}

RaggedTensor RaggedTensor::from_row_lengths(const Leaf& values, const Tensor& row_lengths) {
  if (!row_lengths.defined() || row_lengths.dim() != 1 || row_lengths.scalar_type() != int64) {
    throw InvalidArgumentError(str("RaggedTensor: row_lengths are ",
                                   internal::describe(row_lengths), "; they must be int64 [rows]"));
  }
  return from_row_splits(values,
                         at::cat({at::zeros({1}, row_lengths.options()), row_lengths.cumsum(0)}));
}

RaggedTensor RaggedTensor::from_row_lengths(const Leaf& values,
                                            const std::vector<int64_t>& row_lengths) {
  Tensor lengths = at::empty({static_cast<int64_t>(row_lengths.size())}, int64);
  std::copy(row_lengths.begin(), row_lengths.end(), lengths.data_ptr<int64_t>());
  return from_row_lengths(values, lengths);
}

RaggedTensor RaggedTensor::from_rows(const std::vector<Tensor>& rows) {
  if (rows.empty()) throw InvalidArgumentError("RaggedTensor: there are no rows");
  std::vector<int64_t> lengths;
  for (const Tensor& row : rows) {
    const bool fits = row.defined() && row.dim() > 0 && row.dim() == rows[0].dim() &&
                      row.sizes().slice(1) == rows[0].sizes().slice(1) &&
                      row.scalar_type() == rows[0].scalar_type();
    if (!fits) {
      throw InvalidArgumentError(str(
          "RaggedTensor: row ", lengths.size(), " is ", internal::describe(row), ", but row 0 is ",
          internal::describe(rows[0]), "; rows may differ in dimension 0 only"));
    }
    lengths.push_back(row.size(0));
  }
  return from_row_lengths(at::cat(rows), lengths);
}

RaggedTensor::RaggedTensor(const Structure& structure) : values_(Tensor()) {
  if (composite_kind(structure) != Composite::kRagged) {
    throw InvalidArgumentError(str("expected a RaggedTensor, but got ", structure));
  }
  if (const auto problem = internal::ragged_problem(structure)) {
    throw InvalidArgumentError(str("RaggedTensor: ", *problem));
  }
  values_ = structure[0].leaf();
  row_splits_ = structure[1].tensor();
}

RaggedTensor::operator Structure() const {
  return Structure::make_dict(
      {{internal::kRaggedValues, values_}, {internal::kRowSplits, row_splits_}});
}

Tensor RaggedTensor::row_lengths() const {
  return row_splits_.slice(0, 1) - row_splits_.slice(0, 0, -1);
}

Leaf RaggedTensor::operator[](int64_t i) const {
  if (i < 0 || i >= nrows()) {
    throw OutOfRangeError(str("row ", i, " of a RaggedTensor of ", nrows(), " rows"));
  }
  return values_.slice(row_splits_[i].item<int64_t>(), row_splits_[i + 1].item<int64_t>());
}

RaggedTensor RaggedTensor::with_values(const Leaf& values) const {
  if (values.dim() == 0 || values.sizes()[0] != values_.sizes()[0]) {
    throw InvalidArgumentError(str("RaggedTensor: with_values needs ", values_.sizes()[0],
                                   " values, but got shape ", internal::shape_str(values.sizes())));
  }
  return {values, row_splits_};
}

Tensor RaggedTensor::to_tensor(double padding) const {
  const std::vector<int64_t> shape = dense_shape(*this);
  const auto [rows, columns] = places_of(row_splits_);
  std::vector<int64_t> flat = values().sizes().vec();
  flat[0] = shape[0] * shape[1];
  const Tensor dense = at::full(flat, padding, values().options());
  return dense.index_copy(0, rows * shape[1] + columns, values()).reshape(shape);
}

Tensor RaggedTensor::to_sparse() const {
  const auto [rows, columns] = places_of(row_splits_);
  const Tensor coo =
      at::_sparse_coo_tensor_unsafe(at::stack({rows, columns}), values(), dense_shape(*this));
  return coo._coalesced_(true);  // in order, each place once
}

std::ostream& operator<<(std::ostream& out, const RaggedTensor& tensor) {
  constexpr int64_t kMaxPrinted = 16;
  out << "<RaggedTensor ";
  if (tensor.nrows() > kMaxPrinted || tensor.flat_values().sizes()[0] > kMaxPrinted) {
    return out << "of " << tensor.nrows() << " rows, values " << Structure(tensor.flat_values())
               << '>';
  }
  out << '[';
  for (int64_t i = 0; i < tensor.nrows(); ++i) {
    const Leaf row = tensor[i];
    out << (i > 0 ? ", " : "");
    if (row.sizes()[0] == 0) {
      out << "[]";
    } else {
      out << Structure(row);
    }
  }
  return out << "]>";
}

Structure sparse_structure(const Tensor& coo) {
  if (!coo.defined() || coo.layout() != at::kSparse) {
    throw InvalidArgumentError(
        str("expected a tensor in COO layout, but got ", internal::describe(coo)));
  }
  return Structure::make_dict({{internal::kSparse, coo}});
}

}  // namespace cohort
