// Splits batches into one piece per replica, by the guides' rule.
//
//   split_batches(Dataset::range(6).batch(4), 2);   // [0,1] [2,3] | [4] [5]
#pragma once

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

// Each batch of n rows becomes `num_pieces` elements of ceil(n / num_pieces) rows, the last ones
// smaller or empty. They are views of the batch, so one batch at a time is in memory, whatever the
// number of pieces. If a batch fails, so do all of its pieces. A state fits datasets with any
// number of pieces, unless it was taken within a batch.
// Errors: InvalidArgument (num_pieces below 1; elements that are not batches). While reading:
// InvalidArgument (not a batch; leaves of different numbers of rows: names them).
COHORT_API Dataset split_batches(const Dataset& dataset, int64_t num_pieces);

}  // namespace cohort::data

namespace cohort::internal {

// The pieces of each batch that a reader gets: [first, first + count).
struct PieceRange {
  int64_t first = 0;
  int64_t count = 0;
};

// The pieces of `range` of one batch, as views of it.
// Errors: InvalidArgument (not a batch; leaves of different numbers of rows).
std::vector<Structure> split_batch(const Structure& batch, int64_t num_pieces, PieceRange range);

DataNodePtr make_split(const DataNodePtr& batches, int64_t num_pieces);
// Gives some of the pieces alone. Readers of different pieces of a dataset are at the same state of
// it between two batches.
DataNodePtr make_split(const DataNodePtr& batches, int64_t num_pieces, PieceRange range);
// Errors: InvalidArgument (a leaf has no batch dimension; says to call `batch`).
void check_batched(const StructureSpec& element_spec);
// Errors: InvalidArgument (elements are single examples, whatever their shape; says to call
// `batch`). Functions may make batches: where the graph does not tell, nothing is refused.
void check_not_examples(const DataNode& dataset);

}  // namespace cohort::internal
