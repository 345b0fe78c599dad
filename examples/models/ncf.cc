#include "models/ncf.h"

#include "models/interactions.h"

namespace models {

namespace tf = cohort;
namespace layers = tf::keras::layers;
using tf::keras::SymbolicTensor;

tf::keras::ModelHandle make_ncf(const NcfConfig& config) {
  const auto users = tf::keras::Input({}, {.name = "users", .dtype = tf::int64});
  const auto items = tf::keras::Input({}, {.name = "items", .dtype = tf::int64});
  const SymbolicTensor product =
      layers::Multiply()({layers::Embedding(config.users, config.factors)(users),
                          layers::Embedding(config.items, config.factors)(items)});
  const int64_t half = config.tower.front() / 2;
  SymbolicTensor tower = layers::Concatenate()(
      {layers::Embedding(config.users, half)(users), layers::Embedding(config.items, half)(items)});
  for (const int64_t units : config.tower) {
    tower = layers::Dense(units, {.activation = "relu"})(tower);
  }
  const SymbolicTensor logit = layers::Dense(1)(layers::Concatenate()({product, tower}));
  return tf::keras::Functional({{"users", users}, {"items", items}}, logit);
}

Example ncf_example(const NcfConfig& config) {
  return {.name = "ncf",
          .description = "Neural collaborative filtering: which user takes which item.",
          .train_rows = 16'384,
          .test_rows = 2'048,
          .epochs = 4,
          .batch = 128,
          .make_optimizer = [] { return tf::keras::optimizers::Adam({.learning_rate = 5e-3}); },
          .make_model = [config] { return make_ncf(config); },
          .make_rows =
              [config](int64_t rows, uint64_t seed) {
                return make_interactions(
                    rows, {.users = config.users, .items = config.items, .seed = seed});
              },
          .loss = tf::keras::losses::BinaryCrossentropy({.from_logits = true}),
          .metric = "binary_accuracy"};
}

}  // namespace models
