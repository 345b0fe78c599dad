#include "cohort/data/sharding/batch_sizes.h"

#include <algorithm>

#include "cohort/data/graph/node.h"
#include "cohort/data/sharding/split_batches.h"

namespace cohort::data {

using internal::str;

std::vector<int64_t> batch_sizes_for_worker(int64_t global_batch_size, int64_t num_workers,
                                            int64_t num_replicas_per_worker, int64_t worker_index) {
  if (global_batch_size < 0 || num_workers < 1 || num_replicas_per_worker < 1) {
    throw InvalidArgumentError(str("batch_sizes_for_worker: cannot divide a global batch of ",
                                   global_batch_size, " between ", num_workers, " workers of ",
                                   num_replicas_per_worker, " replicas"));
  }
  constexpr int64_t kMostPieces = int64_t{1} << 24;
  if (num_workers > kMostPieces / num_replicas_per_worker) {
    throw InvalidArgumentError(str("batch_sizes_for_worker: ", num_workers, " workers of ",
                                   num_replicas_per_worker, " replicas are more than ", kMostPieces,
                                   " pieces"));
  }
  if (worker_index < 0 || worker_index >= num_workers) {
    throw InvalidArgumentError(str("batch_sizes_for_worker: worker_index is ", worker_index,
                                   "; with ", num_workers, " workers it must be in [0, ",
                                   num_workers, ")"));
  }
  const int64_t pieces = num_workers * num_replicas_per_worker;
  std::vector<int64_t> sizes(static_cast<size_t>(pieces), global_batch_size / pieces);
  std::for_each_n(sizes.begin(), global_batch_size % pieces, [](int64_t& size) { ++size; });
  std::rotate(sizes.begin(), sizes.begin() + worker_index * num_replicas_per_worker, sizes.end());
  return sizes;
}

int64_t compute_batch_size(const Dataset& dataset) {
  static_assert(kUnknownBatchSize == internal::kUnknownBatchSize);
  const StructureSpec spec = dataset.element_spec();
  internal::check_batched(spec);
  int64_t rows = kUnknownDim;
  for (const TensorSpec& leaf : spec.flatten()) {
    const int64_t own = leaf.shape() ? leaf.shape()->front() : kUnknownDim;
    if (own == kUnknownDim) {
      const int64_t size = dataset.node()->batch_size();
      return size == internal::kSingleExamples ? kUnknownBatchSize : size;
    }
    if (rows != kUnknownDim && own != rows) return kUnknownBatchSize;
    rows = own;
  }
  return rows;
}

}  // namespace cohort::data
