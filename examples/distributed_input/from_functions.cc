// Datasets made by a function, which batches and shards them itself.
#include <ATen/ops/ones.h>

#include "common/print.h"
#include "sections.h"

namespace distributed_input {

using namespace examples;

namespace tf = cohort;
using tf::data::Dataset;
using tf::distribute::InputContext;

void distribute_from_functions() {
  const int64_t global_batch_size = 16;
  const auto strategy = replicas(4);
  const auto dataset_fn = [&](const InputContext& input_context) {
    const int64_t batch_size = input_context.get_per_replica_batch_size(global_batch_size);
    return Dataset::from_tensors(tf::tuple(at::ones({1}), at::ones({1})))
        .repeat(64)
        .batch(16)
        .shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
        .batch(batch_size)
        .prefetch(2);
  };
  // Its 4 batches of 16 make one element of 4 batches: only the first replica gets data.
  auto iterator = strategy.distribute_datasets_from_function(dataset_fn).iterator();
  line("distribute_datasets_from_function, 4 replicas, first step", shapes(iterator.get_next()[0]));

  const InputContext context{.num_input_pipelines = 2, .num_replicas_in_sync = 6};
  const std::string title = "InputContext(2 pipelines, 6 replicas).get_per_replica_batch_size(";
  line(title + "12)", std::to_string(context.get_per_replica_batch_size(12)));
  line(title + "13)", error_of([&] { context.get_per_replica_batch_size(13); }));
}

}  // namespace distributed_input
