// Dividing a dataset between workers as its AutoShardPolicy says, by rewriting its graph.
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
  // Of all workers together. Where the dataset ends with rebatch, dividing it by elements cuts each
  // batch into as many pieces instead (split_batches.h), so that workers stay in step; 0 does not.
  int64_t num_replicas = 0;
};

// The part of worker `index`, by dataset.options().auto_shard_policy():
//   OFF   all of it.
//   FILE  of what is read from files, every num_workers-th file, where the reader gets its names;
//         names are shuffled after that, so that workers share none.
//   DATA  every num_workers-th element, before a prefetch that ends the pipeline.
//   AUTO  FILE, or DATA where that ends in NotFound, which is logged.
//   HINT  every num_workers-th element where shard(SHARD_HINT, SHARD_HINT) stands.
// assert_cardinality holds for the whole only and is left out, which is logged. One worker gets the
// dataset itself.
// Errors: InvalidArgument (num_workers below 1, index outside [0, num_workers)), NotFound (FILE:
// the dataset reads no files, or has a transformation through which they cannot be divided; names
// it). While reading: InvalidArgument (FILE: fewer files than workers, on every worker before the
// first element, or where only reading the names shows how many there are, before the first element
// of theirs; DATA: fewer elements than workers, on those that got one).
COHORT_API Dataset auto_shard(const Dataset& dataset, const AutoShardOptions& options);

}  // namespace cohort::data

namespace cohort::internal {

struct ShardedGraph {
  DataNodePtr root;
  data::AutoShardPolicy applied;   // never AUTO; OFF where nothing was divided
  std::vector<std::string> notes;  // what the user should know, one line each
};

// The same, without logging the notes.
ShardedGraph auto_shard_graph(const DataNodePtr& root, data::AutoShardPolicy policy,
                              const data::AutoShardOptions& options);

}  // namespace cohort::internal
