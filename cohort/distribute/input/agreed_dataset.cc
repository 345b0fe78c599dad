#include "cohort/distribute/input/agreed_dataset.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cohort/collective/task_collectives.h"
#include "cohort/core/text.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/nodes/shuffle_seeds.h"

namespace cohort::internal {

using data::AutoShardPolicy;
using data::Dataset;

void agree_on_dataset(collective::SyncGroup& group, const Dataset& dataset, std::string_view what,
                      std::string_view more) {
  if (!group.spans_tasks()) return;
  const AutoShardPolicy policy = dataset.options().auto_shard_policy();
  std::string known = str("AutoShardPolicy::", policy);
  if (policy != AutoShardPolicy::OFF) {
    known += str(", cardinality ", dataset.cardinality());
    if (!dataset.node()->guesses_spec()) known += str(", ", dataset.element_spec());
  }
  known += more;
  collective::agree_between_tasks(group, what, known);
}

Dataset in_agreed_order(collective::SyncGroup& group, const Dataset& dataset) {
  if (!group.spans_tasks() || dataset.options().auto_shard_policy() == AutoShardPolicy::OFF) {
    return dataset;
  }
  const std::vector<uint64_t> own = drawn_seeds(dataset.node());
  if (own.empty()) return dataset;
  const Tensor seeds = at::empty({static_cast<int64_t>(own.size())}, at::kLong);
  auto* const first = reinterpret_cast<uint64_t*>(seeds.data_ptr<int64_t>());
  std::copy(own.begin(), own.end(), first);
  collective::take_from_first_task(group, seeds, "the seeds of a dataset's shuffles");
  return Dataset(with_agreed_seeds(dataset.node(), {first, own.size()}), dataset.options());
}

}  // namespace cohort::internal
