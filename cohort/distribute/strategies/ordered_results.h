// Puts what the replicas computed from a distributed dataset back into the order of the dataset:
// for predictions, without carrying an index along.
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
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/strategy.h"

namespace cohort::distribute {

// Thread safety: as std::vector.
class COHORT_API OrderedResults {
 public:
  // Adds the results of one step: one batch for each of DistributedIterator::positions(). Pairs,
  // tuples and vectors become tuple structures.
  // Errors: InvalidArgument (the number of results differs from that of the positions; a scalar).
  void add(const std::vector<int64_t>& positions, const PerReplica<Structure>& results);
  template <class Result>
  void add(const std::vector<int64_t>& positions, const PerReplica<Result>& results) {
    add(positions, internal_values::to_structures(results));
  }

  // Whether nothing was added.
  bool empty() const { return results_.empty(); }

  // All rows, concatenated in the order of the dataset, on the CPU.
  // Errors: FailedPrecondition (no results), InvalidArgument (results of different form or shape).
  Structure concat() const;

 private:
  std::vector<std::pair<int64_t, Structure>> results_;
};

// Distributes the dataset (of global batches) so that the order of elements is known: several input
// workers share it by AutoShardPolicy::DATA, whatever its options say.
// Errors: as Strategy::experimental_distribute_dataset.
COHORT_API DistributedDataset distribute_in_order(const Strategy& strategy,
                                                  const data::Dataset& dataset);

// Runs step(batch) on every replica for the whole dataset and returns the rows of its results in
// the dataset's order; the empty tuple for a dataset without elements, of which there is no result
// that could say what rows look like. Results may be what OrderedResults::add accepts.
// Errors: those of the dataset and of the step; OrderedResults'.
template <class Step>
Structure run_in_order(const Strategy& strategy, const data::Dataset& dataset, Step&& step) {
  DistributedIterator iterator = distribute_in_order(strategy, dataset).iterator();
  OrderedResults results;
  while (const auto batch = iterator.next()) {
    results.add(iterator.positions(), strategy.run(step, *batch));
  }
  return results.empty() ? Structure::make_tuple({}) : results.concat();
}

}  // namespace cohort::distribute
