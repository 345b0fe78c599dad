// Which output belongs to which input: the guide carries an index along with each element.
#include <map>

#include "common/print.h"
#include "sections.h"

namespace distributed_input {

using namespace examples;

namespace tf = cohort;
using tf::Tensor;
using tf::data::Dataset;

void keep_the_order_of_outputs() {
  const int64_t dataset_size = 24, batch_size = 6;
  const auto strategy = replicas(4);
  const auto dataset = Dataset::range(dataset_size).enumerate().batch(batch_size);
  const auto predict = [](const Tensor& index, const Tensor& inputs) {
    return tf::tuple(index, 2 * inputs);
  };

  std::map<int64_t, int64_t> result;
  for (const auto& batch : strategy.experimental_distribute_dataset(dataset)) {
    const auto [indices, outputs] = strategy.run(predict, batch);
    for (size_t replica = 0; replica < indices.size(); ++replica) {
      const Tensor& index = indices.value(replica);
      for (int64_t i = 0; i < index.size(0); ++i) {
        result[index[i].item<int64_t>()] = outputs.value(replica)[i].item<int64_t>();
      }
    }
  }
  std::string pairs;
  for (const auto& [index, output] : result) {
    if (!pairs.empty()) pairs += ' ';
    pairs += std::to_string(index);
    pairs += ':';
    pairs += std::to_string(output);
  }
  line("range(24).enumerate().batch(6), 4 replicas, 2 * input by index", pairs);

  // The same without an index: outputs come back in the order of the dataset.
  const auto in_order =
      tf::distribute::run_in_order(strategy, Dataset::range(dataset_size).batch(batch_size),
                                   [](const Tensor& inputs) { return 2 * inputs; });
  for (int64_t i = 0; i < dataset_size; ++i) {
    if (in_order.tensor()[i].item<int64_t>() != result.at(i)) {
      throw tf::InternalError("run_in_order mixed up output " + std::to_string(i));
    }
  }
}

}  // namespace distributed_input
