// What the functions that make whole pipelines of files have in common.
#pragma once

#include <cstdint>
#include <optional>

#include "cohort/data/dataset.h"

namespace cohort::internal {

struct BatchedFiles {
  int64_t batch_size;
  bool drop_remainder;
  std::optional<int64_t> num_epochs;  // none: without end
  bool shuffle;
  int64_t shuffle_buffer_size;
  std::optional<uint64_t> shuffle_seed;
};

// Shuffled, repeated, and in batches. A dataset without end has no smaller last batch.
data::Dataset batched(data::Dataset records, const BatchedFiles& options);

// How several files are read in turn by datasets of their own.
data::InterleaveOptions files_in_turn(int64_t num_parallel_reads, bool sloppy);

}  // namespace cohort::internal
