#include "cohort/distribute/strategies/ordered_results.h"

#include <algorithm>

#include "cohort/data/iteration/stacking.h"
#include "cohort/data/nodes/keep_order.h"
#include "cohort/distribute/strategies/strategy.h"

namespace cohort::distribute {

using internal::str;

namespace {

Structure on_host(const Structure& result) {
  return result.map([](const Leaf& leaf) -> Leaf {
    if (leaf.dim() == 0) {
      throw InvalidArgumentError(
          "OrderedResults: a result is a scalar; return a row for each row of the batch");
    }
    return leaf.is_strings() ? leaf : Leaf(leaf.tensor().to(at::kCPU));
  });
}

}  // namespace

void OrderedResults::add(const std::vector<int64_t>& positions,
                         const PerReplica<Structure>& results) {
  if (positions.size() != results.size()) {
    throw InvalidArgumentError(
        str("OrderedResults: ", results.size(), " results for ", positions.size(), " positions"));
  }
  std::vector<Structure> rows;  // all of them before any is kept: one may be refused
  for (size_t i = 0; i < positions.size(); ++i) rows.push_back(on_host(results.value(i)));
  for (size_t i = 0; i < positions.size(); ++i) {
    results_.emplace_back(positions[i], std::move(rows[i]));
  }
}

Structure OrderedResults::concat() const {
  if (results_.empty()) throw FailedPreconditionError("OrderedResults: there are no results");
  std::vector<const std::pair<int64_t, Structure>*> order;
  for (const auto& result : results_) {
    // Batches of no rows may differ from others in dimensions that the spec leaves open.
    if (internal::num_rows(result.second) > 0) order.push_back(&result);
  }
  if (order.empty()) return results_.front().second;
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->first < b->first; });
  std::vector<Structure> blocks;
  std::vector<int64_t> first_rows;
  int64_t rows = 0;
  for (const auto* result : order) {
    first_rows.push_back(rows);
    rows += internal::num_rows(result->second);
    blocks.push_back(result->second);
  }
  return internal::concat_blocks(blocks, internal::Positions::list(first_rows));
}

DistributedDataset distribute_in_order(const Strategy& strategy, const data::Dataset& dataset) {
  data::Options options;
  options.experimental_distribute.auto_shard_policy = data::AutoShardPolicy::DATA;
  const data::Dataset ordered(internal::make_keep_order(dataset.node()), dataset.options());
  return strategy.experimental_distribute_dataset(ordered.with_options(options));
}

}  // namespace cohort::distribute
