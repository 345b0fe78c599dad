// Inputs that are no dataset: values of one's own, and a generator.
#include <ATen/ops/rand.h>

#include "common/print.h"
#include "sections.h"

namespace distributed_input {

using namespace examples;

namespace tf = cohort;
using tf::Tensor;
using tf::data::Dataset;

namespace {

Tensor itself(const Tensor& x) { return x; }

}  // namespace

void distribute_values() {
  const auto strategy = replicas(4);
  const auto value_fn = [](const tf::distribute::ValueContext& context) {
    return tf::Structure(context.replica_id_in_sync_group).tensor();
  };
  const auto distributed_values = strategy.experimental_distribute_values_from_function(value_fn);
  std::string ids;
  const auto result = strategy.run(itself, distributed_values);
  for (const Tensor& id : result.values()) {
    if (!ids.empty()) ids += ' ';
    ids += std::to_string(id.item<int64_t>());
  }
  line("experimental_distribute_values_from_function, 4 replicas", ids);

  // Each element is a global batch of 4 rows.
  const auto dataset = Dataset::from_generator([] { return std::optional<Tensor>(at::rand({4})); },
                                               {.output_spec = tf::TensorSpec({{4}}, tf::float32)});
  auto iterator = strategy.experimental_distribute_dataset(dataset).iterator();
  line("from_generator of shape (4), 4 replicas, per replica",
       shapes(strategy.run(itself, iterator.get_next())));
}

}  // namespace distributed_input
