// libtorch's shapes are given on as they are, text stands for an operation, dicts for inputs.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  namespace keras = tf::keras;
  Tensor noise = tf::random::normal(batch[0].value(0).sizes());
  strategy.run([](tf::distribute::ReplicaContext& context) {
    return context.all_reduce("SUM", tf::constant(1.));
  });
  const auto a = keras::Input({1}, {.name = "a"}), b = keras::Input({1}, {.name = "b"});
  keras::Functional model({{"a", a}, {"b", b}}, keras::layers::Add()({a, b}));
  keras::callbacks::TensorBoard board("logs");
  tf::print(keras::layers::StringLookup({.vocabulary = {"a", "b"}}).get_vocabulary());
  try {
    model(tf::dict({{"a", noise}}));
  } catch (const tf::errors::InvalidArgumentError& error) {
  }
}
