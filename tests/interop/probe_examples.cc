// The models of examples/models, on batches of their own.
#include <cohort/cohort.h>

#include <string>
#include <utility>
#include <vector>

#include "models/example.h"
#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

// Rows [first, first + count) of everything.
Structure part_of(const Structure& all, int64_t first, int64_t count) {
  return all.map([&](const Leaf& leaf) -> Leaf { return leaf.tensor().narrow(0, first, count); });
}

models::Rows part_of(const models::Rows& all, int64_t first, int64_t count) {
  return {part_of(all.inputs, first, count), part_of(all.labels, first, count),
          part_of(all.weights, first, count)};
}

Json json_of_inputs(const Structure& inputs) {
  if (inputs.is_leaf()) return json_of(inputs.tensor());
  Json json = Json::object();
  for (const auto& [name, value] : inputs.items()) json[name] = json_of(value.tensor());
  return json;
}

Json json_of_rows(const models::Rows& rows) {
  return {{"inputs", json_of_inputs(rows.inputs)},
          {"labels", json_of(rows.labels.tensor())},
          {"weights", rows.weights.is_leaf() ? json_of(rows.weights.tensor()) : Json()}};
}

}  // namespace

Json train_example(const Json& request) {
  random::set_seed(5);
  keras::backend::set_floatx(request.at("floatx").get<std::string>());
  const models::Example example = models::make_example(request.at("model"), /*dropout=*/0);
  const keras::ModelHandle model = example.make_model();
  model.compile({.optimizer = example.make_optimizer(), .loss = example.loss});
  Json answer = {{"weights", Json::array()},
                 {"batches", Json::array()},
                 {"learning_rate", model.optimizer().learning_rate()},
                 {"losses", Json::array()}};
  for (const Tensor& weight : model.get_weights()) answer["weights"].push_back(json_of(weight));

  const int64_t rows = request.at("rows"), count = request.at("batches");
  const models::Rows all = example.make_rows(rows * count, /*seed=*/3);
  std::vector<models::Rows> batches;
  for (int64_t i = 0; i < count; ++i) {
    batches.push_back(part_of(all, i * rows, rows));
    answer["batches"].push_back(json_of_rows(batches.back()));
  }
  for (size_t step = 0; step < request.at("steps").get<size_t>(); ++step) {
    const models::Rows& batch = batches[step % batches.size()];
    const keras::Logs logs = model.train_on_batch(
        batch.inputs, batch.labels, {.sample_weight = batch.weights, .reset_metrics = true});
    answer["losses"].push_back(logs["loss"]);
  }
  return answer;
}

}  // namespace cohort::interop
