// A preprocessing layer inside the dataset, made under the strategy's scope.
#include "common/print.h"
#include "sections.h"

namespace distributed_input {

using namespace examples;

namespace tf = cohort;
using tf::data::Dataset;
using tf::distribute::InputContext;

void preprocess() {
  const auto strategy = replicas(4);
  const auto layer = [&] {
    auto scope = strategy.scope();
    return tf::keras::layers::StringLookup({.vocabulary = {"a", "b", "c", "d", "f"}});
  }();

  const auto dataset_fn = [&](const InputContext& input_context) {
    const int64_t global_batch_size = 4;
    const int64_t batch_size = input_context.get_per_replica_batch_size(global_batch_size);
    return Dataset::from_tensor_slices(tf::StringTensor({"a", "c", "e"}))
        .repeat()
        .batch(batch_size)
        .shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
        .map(layer);
  };
  auto iterator = strategy.distribute_datasets_from_function(dataset_fn).iterator();
  Steps seen;
  for (int i = 0; i < 3; ++i) seen.add(step(iterator.get_next()));
  line("StringLookup [a,b,c,d,f] on a,c,e repeated, 4 replicas", seen.text());
}

}  // namespace distributed_input
