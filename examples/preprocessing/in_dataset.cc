#include <iostream>
#include <string>
#include <vector>

#include "sections.h"

namespace preprocessing {

namespace tf = cohort;

void in_the_dataset() {
  const tf::distribute::MirroredStrategy strategy;
  const std::vector<std::string> vocab = {"a", "b", "c", "d", "f"};
  const auto layer = [&] {
    auto scope = strategy.scope();
    return tf::keras::layers::StringLookup({.vocabulary = vocab});
  }();

  const auto dataset_fn = [&](const tf::distribute::InputContext& input_context) {
    const int64_t global_batch_size = 4;
    const int64_t batch_size = input_context.get_per_replica_batch_size(global_batch_size);
    return tf::data::Dataset::from_tensor_slices(tf::StringTensor({"a", "c", "e"}))
        .repeat()
        .batch(batch_size)
        .shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
        .map(layer);
  };
  const auto distributed_dataset = strategy.distribute_datasets_from_function(dataset_fn);

  std::cout << "In the dataset, on " << strategy.num_replicas_in_sync() << " replicas:\n";
  auto iterator = distributed_dataset.iterator();
  for (int i = 0; i < 3; ++i) std::cout << iterator.get_next() << '\n';
}

}  // namespace preprocessing
