#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/sparse_tensor.h"
#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/batch_rows.h"
#include "cohort/data/iteration/blocks.h"
#include "cohort/data/iteration/counting_iterator.h"
#include "cohort/data/iteration/origin.h"
#include "cohort/data/iteration/row_specs.h"

namespace cohort::internal {
namespace {

using RowShape = std::vector<int64_t>;

// Errors: InvalidArgument (the tensor is larger than `row_shape`, or of another rank or dtype).
void check_row(const Structure& element, const Structure& first, const RowShape& row_shape,
               int64_t index) {
  const auto refuse = [&](const std::string& problem) {
    throw InvalidArgumentError(str("sparse_batch: element ", index, problem));
  };
  if (!element.is_leaf() || !element.leaf().is_tensor() ||
      element.tensor().layout() != at::kStrided) {
    refuse(str(" is ", element, "; sparse_batch takes one dense tensor of numbers"));
  }
  const Tensor& row = element.tensor();
  if (row.scalar_type() != first.tensor().scalar_type()) {
    refuse(
        str(" is ", describe(row), ", but the first of its batch is ", describe(first.tensor())));
  }
  bool fits = row.dim() == std::ssize(row_shape);
  for (int64_t d = 0; fits && d < row.dim(); ++d) {
    const int64_t most = row_shape[static_cast<size_t>(d)];
    fits = most == kUnknownDim || row.size(d) <= most;
  }
  if (!fits) {
    refuse(str(" is ", describe(row), ", which does not fit into the row_shape ",
               shape_str(row_shape)));
  }
}

// The index of every value of a tensor of these sizes: [rank, numel], in row-major order.
Tensor all_indices(at::IntArrayRef sizes) {
  if (sizes.empty()) return at::zeros({0, 1}, int64);
  return at::ones(sizes, boolean).nonzero().t();
}

Structure stack_sparse(const std::vector<Structure>& rows, const RowShape& row_shape,
                       int64_t first_index) {
  RowShape shape = row_shape;
  for (int64_t& size : shape) size = std::max<int64_t>(size, 0);
  std::vector<Tensor> indices, values;
  for (size_t i = 0; i < rows.size(); ++i) {
    check_row(rows[i], rows[0], row_shape, first_index + static_cast<int64_t>(i));
    const Tensor& row = rows[i].tensor();
    for (size_t d = 0; d < shape.size(); ++d) {
      if (row_shape[d] == kUnknownDim) {
        shape[d] = std::max(shape[d], row.size(static_cast<int64_t>(d)));
      }
    }
    const Tensor own = all_indices(row.sizes());
    indices.push_back(at::cat({at::full({1, own.size(1)}, static_cast<int64_t>(i), int64), own}));
    values.push_back(row.detach().cpu().reshape({-1}));
  }
  shape.insert(shape.begin(), std::ssize(rows));
  const Tensor coo = at::_sparse_coo_tensor_unsafe(at::cat(indices, 1), at::cat(values), shape);
  return sparse_structure(coo._coalesced_(true));  // in order, each place once
}

class SparseBatchIterator final : public CountingIterator {
 public:
  SparseBatchIterator(std::unique_ptr<DataIterator> input, int64_t batch_size, RowShape row_shape)
      : CountingIterator(std::move(input)),
        batch_size_(batch_size),
        row_shape_(std::move(row_shape)) {}

  bool next(Structure& out) override {
    std::vector<Structure> elements;
    const int64_t rows = read_counted(index_, batch_size_, [&] {
      collect(*input_, batch_size_, elements);
      return std::ssize(elements);
    });
    if (rows == 0) return false;
    out = stack_sparse(elements, row_shape_, index_ - rows);
    return true;
  }
  std::shared_ptr<const std::string> last_origin() const override {
    return of_several("a batch", *input_);
  }

 private:
  const int64_t batch_size_;
  const RowShape row_shape_;
};

class SparseBatchNode final : public UnaryNode {
 public:
  SparseBatchNode(DataNodePtr input, int64_t batch_size, RowShape row_shape)
      : UnaryNode("sparse_batch", std::move(input)),
        batch_size_(batch_size),
        row_shape_(std::move(row_shape)) {
    if (batch_size < 1) {
      throw InvalidArgumentError(
          str("sparse_batch: batch_size is ", batch_size, "; it must be at least 1"));
    }
    for (const int64_t size : row_shape_) {
      if (size >= kUnknownDim) continue;
      throw InvalidArgumentError(str("sparse_batch: row_shape is ", shape_str(row_shape_),
                                     "; sizes are at least 0, or kUnknownDim"));
    }
    if (!this->input().guesses_spec()) row_spec_of(this->input().element_spec());
  }

  Attributes attributes() const override {
    return {{"batch_size", str(batch_size_)}, {"row_shape", shape_str(row_shape_)}};
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<SparseBatchNode>(std::move(inputs[0]), batch_size_, row_shape_);
  }
  StructureSpec element_spec() const override {
    return stacked_spec(row_spec_of(input().element_spec()), kUnknownDim);
  }
  int64_t cardinality() const override {
    const int64_t rows = input().cardinality();
    return rows < 0 ? rows : num_batches(rows, batch_size_, /*drop_remainder=*/false);
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return std::make_unique<SparseBatchIterator>(input().make_iterator(context), batch_size_,
                                                 row_shape_);
  }
  bool passes_file_sharding() const override { return true; }
  int64_t batch_size() const override { return batch_size_; }

 private:
  // The spec of a row, sparse. Errors: InvalidArgument (elements are no tensors of this rank).
  StructureSpec row_spec_of(const StructureSpec& element) const {
    const bool fits =
        element.is_leaf() && !element.leaf().is_string() &&
        (!element.leaf().shape() || element.leaf().shape()->size() == row_shape_.size());
    if (!fits) {
      throw InvalidArgumentError(str("sparse_batch: elements are ", element,
                                     "; it takes one dense tensor of numbers of the rank of ",
                                     "row_shape, which is ", shape_str(row_shape_)));
    }
    return StructureSpec::make_dict({{kSparse, TensorSpec(row_shape_, element.leaf().dtype())}});
  }

  const int64_t batch_size_;
  const RowShape row_shape_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::sparse_batch(int64_t batch_size, std::vector<int64_t> row_shape) const {
  return Dataset(
      std::make_shared<internal::SparseBatchNode>(node_, batch_size, std::move(row_shape)),
      options_);
}

}  // namespace cohort::data
