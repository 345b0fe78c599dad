// Elements taken together: those of a batch, or a block of an input that has none.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cohort/data/iteration/iterator.h"

namespace cohort::internal {

// Reads elements one by one until there are `n` in `elements`, or no more. Where one fails the rest
// of the `n` is passed over before its error goes on, so that the next block starts where it would
// have.
void collect(DataIterator& input, int64_t n, std::vector<Structure>& elements);

// The same elements in blocks, for those who want blocks of any input; itself where it has them.
std::unique_ptr<DataIterator> with_blocks(std::unique_ptr<DataIterator> input);

}  // namespace cohort::internal
