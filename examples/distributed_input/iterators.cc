// Distributed iterators: a number of steps, the end, and functions with a signature.
#include "common/print.h"
#include "sections.h"

namespace distributed_input {

using namespace examples;

namespace tf = cohort;
using tf::Structure;
using tf::Tensor;
using tf::data::Dataset;
using tf::distribute::PerReplica;

namespace {

// A loop that asks before each step whether there is data.
void loop_until_the_end() {
  const int64_t global_batch_size = 4;
  const int steps_per_loop = 5;
  const auto strategy = replicas(4);
  const auto dist_dataset =
      strategy.experimental_distribute_dataset(Dataset::range(9).batch(global_batch_size));
  auto iterator = dist_dataset.iterator();

  Steps seen;
  for (int i = 0; i < steps_per_loop; ++i) {
    const auto optional_data = iterator.get_next_as_optional();
    if (!optional_data.has_value()) break;
    const auto per_replica_results =
        strategy.run([](const Tensor& x) { return x; }, optional_data.get_value());
    seen.add(step(per_replica_results));
  }
  line("get_next_as_optional, range(9).batch(4), 4 replicas", seen.text());
  // get_next throws instead.
  line("get_next after the end", error_of([&] { iterator.get_next(); }));
}

// A function that takes this dataset's batches and nothing else.
void call_with_a_signature() {
  const auto strategy = replicas(2);
  const auto dist_dataset = strategy.experimental_distribute_dataset(Dataset::range(4).batch(2));
  const auto train_step = tf::function(
      [&](const PerReplica<Structure>& per_replica_inputs) {
        const auto step_fn = [](const Tensor& inputs) { return 2 * inputs; };
        return strategy.run(step_fn, per_replica_inputs);
      },
      {.input_signature = {{dist_dataset.element_spec()}}});

  Steps outputs;
  for (const auto& batch : dist_dataset) outputs.add(step(train_step(batch)));
  line("range(4).batch(2), 2 replicas, 2 * input", outputs.text());
}

}  // namespace

void iterate() {
  loop_until_the_end();
  call_with_a_signature();
}

}  // namespace distributed_input
