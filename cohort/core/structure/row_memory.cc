#include "cohort/core/structure/row_memory.h"

#include <ATen/ops/empty.h>
#include <c10/core/TensorImpl.h>

#include <utility>

namespace cohort::internal {
namespace {

// What a row's memory holds: the whole block, and which row it is.
struct RowContext {
  Tensor block;
  int64_t row = 0;
};

void delete_row(void* context) { delete static_cast<RowContext*>(context); }

thread_local RowOffer* current_offer = nullptr;

const RowContext* context_of(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  const c10::DataPtr& memory = tensor.storage().data_ptr();
  if (memory.get_deleter() != &delete_row) return nullptr;
  return static_cast<const RowContext*>(memory.get_context());
}

Tensor tensor_in(const RowMemory& row) {
  Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(row.storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(row.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(row.sizes);
  return tensor;
}

}  // namespace

RowBlock::RowBlock(int64_t rows, std::vector<int64_t> row_sizes, DType dtype)
    : row_sizes_(std::move(row_sizes)) {
  std::vector<int64_t> sizes = {rows};
  sizes.insert(sizes.end(), row_sizes_.begin(), row_sizes_.end());
  block_ = at::empty(sizes, dtype);
}

RowMemory RowBlock::row(int64_t i) const {
  const size_t bytes = block_.nbytes() / static_cast<size_t>(block_.size(0));
  char* const begin = static_cast<char*>(block_.data_ptr()) + static_cast<size_t>(i) * bytes;
  c10::DataPtr memory(begin, new RowContext{block_, i}, &delete_row, block_.device());
  return {c10::Storage(c10::Storage::use_byte_size_t(), bytes, std::move(memory),
                       /*allocator=*/nullptr, /*resizable=*/false),
          row_sizes_, block_.scalar_type()};
}

RowOffer::RowOffer(std::vector<RowMemory> rows) : rows_(std::move(rows)), outer_(current_offer) {
  current_offer = this;
}

RowOffer::~RowOffer() { current_offer = outer_; }

Tensor empty_result(at::IntArrayRef sizes, DType dtype) {
  if (current_offer) {
    for (const RowMemory& row : current_offer->rows_) {
      const bool free = row.storage.use_count() == 1;  // this one
      if (free && row.dtype == dtype && sizes == row.sizes) return tensor_in(row);
    }
  }
  return at::empty(sizes, dtype);
}

bool is_row(const Tensor& tensor) { return context_of(tensor) != nullptr; }

Tensor batch_of_rows(const std::vector<Tensor>& rows, size_t most_holders) {
  const RowContext* const first = rows.empty() ? nullptr : context_of(rows[0]);
  if (!first) return {};
  const Tensor& block = first->block;
  const auto count = static_cast<int64_t>(rows.size());
  if (count > block.size(0)) return {};
  for (int64_t i = 0; i < count; ++i) {
    const Tensor& row = rows[i];
    const RowContext* const context = context_of(row);
    const bool in_place = context && context->row == i && context->block.is_same(block) &&
                          row.storage_offset() == 0 && row.is_contiguous() &&
                          row.scalar_type() == block.scalar_type() &&
                          row.sizes() == block.sizes().slice(1) && !row.requires_grad();
    if (!in_place || row.storage().use_count() != 1 || row.use_count() > most_holders) return {};
  }
  return count == block.size(0) ? block : block.narrow(0, 0, count);
}

}  // namespace cohort::internal
