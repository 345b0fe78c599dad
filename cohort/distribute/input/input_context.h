// Tells a dataset function for which input pipeline it makes a dataset.
//
//   auto dist_dataset = strategy.distribute_datasets_from_function([&](const InputContext& context)
//   {
//     return dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
//         .batch(context.get_per_replica_batch_size(global_batch_size));
//   });
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>

#include "cohort/core/export.h"

namespace cohort::data {
class Dataset;
}

namespace cohort::distribute {

// Thread safety: as any struct.
struct COHORT_API InputContext {
  int num_input_pipelines = 1;  // input workers of the sync group, each with its own dataset
  int input_pipeline_id = 0;    // which of them this is
  int num_replicas_in_sync = 1;

  // Errors: InvalidArgument (not divisible by the number of replicas).
  int64_t get_per_replica_batch_size(int64_t global_batch_size) const;
};
// tf.distribute.InputContext(input pipeline id I, total: N)
COHORT_API std::ostream& operator<<(std::ostream& out, const InputContext& context);

// Makes the dataset of one input worker.
using DatasetFunction = std::function<data::Dataset(const InputContext&)>;

}  // namespace cohort::distribute
