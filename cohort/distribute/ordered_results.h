// What replicas computed from a distributed dataset, in the order of the dataset: for predictions,
// without carrying an index along.
//
//   Structure predictions = run_in_order(strategy, dataset, predict);
//
// or step by step:
//
//   OrderedResults results;
//   auto it = dist_dataset.iterator();
//   while (auto batch = it.next()) results.add(it.positions(), strategy.run(predict, *batch));
//   Structure predictions = results.concat();
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/distribute/distributed_dataset.h"

namespace cohort::distribute {

// Thread safety: as std::vector.
class COHORT_API OrderedResults {
 public:
  // The results of one step: a batch for each position of DistributedIterator::positions(). Pairs,
  // tuples and vectors become tuple structures.
  // Errors: InvalidArgument (another number of results than positions; a scalar).
  void add(const std::vector<int64_t>& positions, const PerReplica<Structure>& results);
  template <class Result>
  void add(const std::vector<int64_t>& positions, const PerReplica<Result>& results) {
    add(positions, internal_values::to_structures(results));
  }

  // All rows, one after another in the order of the dataset, on the CPU.
  // Errors: FailedPrecondition (no results), InvalidArgument (results of different form or shape).
  Structure concat() const;

 private:
  std::vector<std::pair<int64_t, Structure>> results_;
};

// The dataset (of global batches) over the replicas, so that the order of elements is known:
// several input workers share it by AutoShardPolicy::DATA, whatever its options say. Errors: as
// Strategy::experimental_distribute_dataset.
COHORT_API DistributedDataset distribute_in_order(const Strategy& strategy,
                                                  const data::Dataset& dataset);

// step(batch) on every replica for the whole dataset; its results' rows in the dataset's order, as
// OrderedResults::add takes them.
// Errors: those of the dataset and of the step; OrderedResults'.
template <class Step>
Structure run_in_order(const Strategy& strategy, const data::Dataset& dataset, Step&& step) {
  DistributedIterator iterator = distribute_in_order(strategy, dataset).iterator();
  OrderedResults results;
  while (const auto batch = iterator.next()) {
    results.add(iterator.positions(), strategy.run(step, *batch));
  }
  return results.concat();
}

}  // namespace cohort::distribute
