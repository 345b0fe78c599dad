// Reads several elements together: those of a batch, or a block of an input that has no blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cohort/data/iteration/iterator.h"

namespace cohort::internal {

// Reads elements one by one until `elements` holds `n`, or the input ends. If one fails, the rest
// of the `n` is skipped before the error is thrown, so that the next block starts where it would
// have started without the error.
void collect(DataIterator& input, int64_t n, std::vector<Structure>& elements);

// Returns an iterator that gives the same elements in blocks; `input` itself if it has blocks.
std::unique_ptr<DataIterator> with_blocks(std::unique_ptr<DataIterator> input);

}  // namespace cohort::internal
