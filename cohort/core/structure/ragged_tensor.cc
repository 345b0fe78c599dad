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
#include "cohort/core/text.h"

namespace cohort {
namespace {

using internal::Composite;
using internal::composite_kind;
using internal::str;

std::optional<std::string> values_problem(const Leaf& values) {
  if (values.is_tensor() && !values.tensor().defined()) return "the values are undefined";
  if (values.dim() == 0) return "the values are a scalar; they need a dimension of rows' values";
  return std::nullopt;
}

std::optional<std::string> splits_problem(const Tensor& splits) {
  if (!splits.defined() || splits.scalar_type() != int64 || splits.dim() != 1 ||
      splits.size(0) == 0) {
    return str("row_splits are ", internal::describe(splits),
               "; they must be int64 [rows + 1] and begin with 0");
  }
  return std::nullopt;
}

std::string wrong_end(int64_t last_split, int64_t count) {
  return str("row_splits end with ", last_split, ", but there are ", count, " values");
}

// `count`: what the splits divide.
void check_splits(const Tensor& splits, int64_t count) {
  const auto refuse = [&](const std::string& problem) {
    throw InvalidArgumentError(str("RaggedTensor: ", problem));
  };
  if (const auto problem = splits_problem(splits)) refuse(*problem);
  const Tensor on_cpu = splits.cpu().contiguous();
  const auto* split = on_cpu.data_ptr<int64_t>();
  const int64_t last = splits.size(0) - 1;
  if (split[0] != 0) refuse(str("row_splits begin with ", split[0], ", not with 0"));
  for (int64_t i = 0; i < last; ++i) {
    if (split[i + 1] >= split[i]) continue;
    refuse(str("row_splits must not fall, but row ", i, " ends at ", split[i + 1],
               ", before its begin at ", split[i]));
  }
  if (split[last] != count) refuse(wrong_end(split[last], count));
}

// For each value, the row that it is in and its place there.
std::pair<Tensor, Tensor> places_of(const Tensor& row_splits) {
  const Tensor splits = row_splits;
  const Tensor lengths = splits.slice(0, 1) - splits.slice(0, 0, -1);
  const Tensor rows = at::repeat_interleave(lengths);
  const Tensor columns = at::arange(rows.size(0), rows.options()) - splits.index_select(0, rows);
  return {rows, columns};
}

int64_t longest_of(const Tensor& row_splits) {
  if (row_splits.size(0) == 1) return 0;
  return (row_splits.slice(0, 1) - row_splits.slice(0, 0, -1)).max().item<int64_t>();
}

Tensor padded(const Tensor& values, const Tensor& row_splits, double padding) {
  const int64_t rows = row_splits.size(0) - 1, longest = longest_of(row_splits);
  const auto [row_of, column_of] = places_of(row_splits);
  std::vector<int64_t> shape = values.sizes().vec();
  shape[0] = rows * longest;
  const Tensor flat = at::full(shape, padding, values.options());
  shape[0] = longest;
  shape.insert(shape.begin(), rows);
  return flat.index_copy(0, row_of * longest + column_of, values).reshape(shape);
}

int64_t split_at(const Tensor& splits, int64_t i) {
  if (!splits.is_cpu()) return splits[i].item<int64_t>();
  return splits.data_ptr<int64_t>()[i * splits.stride(0)];
}

std::optional<std::string> problem_of_end(const Tensor& splits, int64_t count) {
  // A device is not waited for: what is there came from a structure that was whole on the host.
  if (!splits.device().is_cpu()) return std::nullopt;
  const int64_t last = split_at(splits, splits.size(0) - 1);
  return last == count ? std::nullopt : std::optional(wrong_end(last, count));
}

void print_row(std::ostream& out, const Structure& row) {
  if (composite_kind(row) == Composite::kRagged) {
    const RaggedTensor ragged = row;
    out << '[';
    for (int64_t i = 0; i < ragged.nrows(); ++i) {
      out << (i > 0 ? ", " : "");
      print_row(out, ragged.row(i));
    }
    out << ']';
  } else if (row.leaf().sizes()[0] == 0) {
    out << "[]";
  } else {
    out << Structure(row.leaf());
  }
}

}  // namespace

std::optional<std::string> internal::ragged_problem(const Structure& ragged) {
  const Structure& values = ragged[0];
  bool tensors = values.is_leaf();
  for (size_t i = 1; i < ragged.size(); ++i) {
    tensors = tensors && ragged[i].is_leaf() && ragged[i].leaf().is_tensor();
  }
  if (!tensors) return "its values and row_splits must be tensors";
  if (auto problem = values_problem(values.leaf())) return problem;
  for (size_t i = 1; i < ragged.size(); ++i) {
    if (ragged.items()[i].first != row_splits_key(i - 1)) {
      return str("there is a ", quoted(ragged.items()[i].first), " in it");
    }
    if (auto problem = splits_problem(ragged[i].tensor())) return problem;
  }
  for (size_t i = 1; i < ragged.size(); ++i) {
    const bool last = i + 1 == ragged.size();
    const int64_t count = last ? values.leaf().sizes()[0] : ragged[i + 1].tensor().size(0) - 1;
    if (auto problem = problem_of_end(ragged[i].tensor(), count)) return problem;
  }
  return std::nullopt;
}

const RaggedTensor& internal::singly_ragged(const RaggedTensor& ragged, std::string_view what) {
  if (ragged.ragged_rank() == 1) return ragged;
  throw InvalidArgumentError(str(what, " takes RaggedTensors of one ragged dimension, but got one ",
                                 "of ", ragged.ragged_rank()));
}

RaggedTensor RaggedTensor::from_nested_row_splits(const Leaf& flat_values,
                                                  const std::vector<Tensor>& nested_row_splits) {
  if (nested_row_splits.empty())
    throw InvalidArgumentError("RaggedTensor: there are no row_splits");
  if (const auto problem = values_problem(flat_values)) {
    throw InvalidArgumentError(str("RaggedTensor: ", *problem));
  }
  int64_t count = flat_values.sizes()[0];
  for (size_t i = nested_row_splits.size(); i-- > 0;) {
    check_splits(nested_row_splits[i], count);
    count = nested_row_splits[i].size(0) - 1;
  }
  return {flat_values, nested_row_splits};
}

RaggedTensor RaggedTensor::from_row_splits(const RaggedTensor& values, const Tensor& row_splits) {
  check_splits(row_splits, values.nrows());
  std::vector<Tensor> splits = {row_splits};
  splits.insert(splits.end(), values.splits_.begin(), values.splits_.end());
  return {values.values_, std::move(splits)};
}

RaggedTensor RaggedTensor::from_row_splits(const Leaf& values, const Tensor& row_splits) {
  return from_nested_row_splits(values, {row_splits});
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
  for (size_t i = 1; i < structure.size(); ++i) splits_.push_back(structure[i].tensor());
}

RaggedTensor::operator Structure() const {
  Structure::Dict items = {{internal::kRaggedValues, values_}};
  for (size_t i = 0; i < splits_.size(); ++i) {
    items.emplace_back(internal::row_splits_key(i), splits_[i]);
  }
  return Structure::make_dict(std::move(items));
}

Tensor RaggedTensor::row_lengths() const {
  return row_splits().slice(0, 1) - row_splits().slice(0, 0, -1);
}

Leaf RaggedTensor::operator[](int64_t i) const {
  internal::singly_ragged(*this, "operator[], which gives a row as a tensor,");
  return row(i).leaf();
}

Structure RaggedTensor::row(int64_t i) const {
  if (i < 0 || i >= nrows()) {
    throw OutOfRangeError(str("row ", i, " of a RaggedTensor of ", nrows(), " rows"));
  }
  const RaggedTensor one = slice(i, i + 1);
  if (ragged_rank() == 1) return one.values_;
  return one.inner();
}

RaggedTensor RaggedTensor::inner() const {
  if (ragged_rank() == 1) {
    throw InvalidArgumentError("inner: the rows of this RaggedTensor are not ragged; see values");
  }
  return {values_, {splits_.begin() + 1, splits_.end()}};
}

RaggedTensor RaggedTensor::slice(int64_t begin, int64_t end) const {
  if (begin < 0 || begin > end || end > nrows()) {
    throw OutOfRangeError(str("rows [", begin, ", ", end, ") are outside of ", *this));
  }
  std::vector<Tensor> splits;
  for (const Tensor& level : splits_) {
    const int64_t first = split_at(level, begin), last = split_at(level, end);
    splits.push_back(level.slice(0, begin, end + 1) - first);
    begin = first;
    end = last;
  }
  return {values_.slice(begin, end), std::move(splits)};
}

RaggedTensor RaggedTensor::with_values(const Leaf& values) const {
  if (values.dim() == 0 || values.sizes()[0] != values_.sizes()[0]) {
    throw InvalidArgumentError(str("RaggedTensor: with_values needs ", values_.sizes()[0],
                                   " values, but got shape ", internal::shape_str(values.sizes())));
  }
  return {values, splits_};
}

Tensor RaggedTensor::to_tensor(double padding) const {
  Tensor dense = values();
  for (size_t i = splits_.size(); i-- > 0;) dense = padded(dense, splits_[i], padding);
  return dense;
}

Tensor RaggedTensor::to_sparse() const {
  std::vector<int64_t> shape = values().sizes().vec();
  shape[0] = nrows();
  std::vector<Tensor> indices = {at::arange(nrows(), row_splits().options())};
  for (const Tensor& splits : splits_) {
    const auto [rows, columns] = places_of(splits);
    for (Tensor& index : indices) index = index.index_select(0, rows);
    shape.insert(shape.begin() + static_cast<int64_t>(indices.size()), longest_of(splits));
    indices.push_back(columns);
  }
  const Tensor coo = at::_sparse_coo_tensor_unsafe(at::stack(indices), values(), shape);
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
    out << (i > 0 ? ", " : "");
    print_row(out, tensor.row(i));
  }
  return out << "]>";
}

}  // namespace cohort
