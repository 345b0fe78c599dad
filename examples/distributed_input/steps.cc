// A step over a distributed dataset, in a range-for.
#include <ATen/ops/ones.h>

#include <set>
#include <sstream>

#include "common/print.h"
#include "sections.h"

namespace distributed_input {

using namespace examples;

namespace tf = cohort;
using tf::Tensor;
using tf::data::Dataset;

void run_steps_over_it() {
  const int64_t global_batch_size = 16;
  const auto strategy = replicas(4);
  const auto dataset = Dataset::from_tensors(tf::tuple(at::ones({1}), at::ones({1})))
                           .repeat(100)
                           .batch(global_batch_size);
  const auto dist_dataset = strategy.experimental_distribute_dataset(dataset);

  const auto train_step = [](const Tensor& features, const Tensor& labels) {
    return labels - 0.3 * features;
  };
  int num_steps = 0;
  std::string first, last;
  std::set<float> values;
  for (const auto& batch : dist_dataset) {
    // The 100 elements make 7 global batches: the last one has only 4.
    last = shapes(batch[0]);
    if (num_steps++ == 0) first = last;
    const auto losses = strategy.run(train_step, batch);
    for (const Tensor& loss : strategy.experimental_local_results(losses)) {
      for (int64_t i = 0; i < loss.numel(); ++i) values.insert(loss.flatten()[i].item<float>());
    }
  }
  const std::string title = "from_tensors(([1.],[1.])).repeat(100).batch(16), 4 replicas, ";
  line(title + "steps", std::to_string(num_steps));
  line(title + "first step", first);
  line(title + "last step", last);
  std::ostringstream every_value;
  for (const float value : values) every_value << (value == *values.begin() ? "" : " ") << value;
  line("labels - 0.3 * features, 4 replicas, every value", every_value.str());
}

}  // namespace distributed_input
