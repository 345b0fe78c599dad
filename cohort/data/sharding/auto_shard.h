// Divides a dataset between workers by its AutoShardPolicy, by rewriting its graph.
//
//   auto_shard(Dataset::range(4).prefetch(1), {.num_workers = 2, .index = 0});   // 0 2
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

struct AutoShardOptions {
  int64_t num_workers = 1;
  int64_t index = 0;  // the worker whose part is wanted
  // The number of replicas of all workers together. If the dataset ends with rebatch, a division by
  // elements cuts each batch into this many pieces instead (split_batches.h), so that workers stay
  // in step; with 0 it does not.
  int64_t num_replicas = 0;
  // Whether parts may be empty: for readers that are not in step. Fewer files or elements than
  // workers are then no error, and AUTO takes DATA where files are fewer.
  bool parts_may_be_empty = false;
};

// The part of worker `index`, by dataset.options().auto_shard_policy():
//   OFF   all of it.
//   FILE  of what is read from files, every num_workers-th file, where the reader gets its names;
//         names are shuffled after that, so that workers share none.
//   DATA  every num_workers-th element, before a prefetch that ends the pipeline.
//   AUTO  FILE, or DATA where that ends in NotFound, which is logged.
//   HINT  every num_workers-th element where shard(SHARD_HINT, SHARD_HINT) stands.
// assert_cardinality holds only for the whole dataset; it is left out, which is logged. With one
// worker the result is the dataset itself.
// Errors: InvalidArgument (num_workers below 1, index outside [0, num_workers)), NotFound (FILE:
// the dataset reads no files, or has a transformation through which they cannot be divided; names
// it). While reading: InvalidArgument. With FILE it means fewer files than workers, and comes on
// every worker before the first element (or, if the number of files is known only after reading the
// names, before that worker's first element). With DATA it means fewer elements than workers, and
// comes on the workers that got one.
COHORT_API Dataset auto_shard(const Dataset& dataset, const AutoShardOptions& options);

}  // namespace cohort::data

namespace cohort::internal {

struct ShardedGraph {
  DataNodePtr root;
  data::AutoShardPolicy applied;   // never AUTO; OFF where nothing was divided
  std::vector<std::string> notes;  // what the user should know, one line each
};

// The same, but returns the notes instead of logging them.
ShardedGraph auto_shard_graph(const DataNodePtr& root, data::AutoShardPolicy policy,
                              const data::AutoShardOptions& options);

}  // namespace cohort::internal
