// For tests of plans: a model that trains on two replicas, which have other numbers of examples.
#pragma once

#include <ATen/ops/cat.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"

namespace cohort::keras {

// The weights of each replica after four steps, in which plans ran. `input`: the shape of both
// replicas' examples together, of which the first has `of_first`.
inline std::vector<Tensor> weights_of_two_replicas(FunctionRef<Sequential()> make,
                                                   const std::vector<int64_t>& input,
                                                   int64_t of_first) {
  random::set_seed(7);
  const distribute::MirroredStrategy strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const Sequential model = make();
  const optimizers::Optimizer optimizer = optimizers::Adam({.learning_rate = 0.01});
  for (int step = 0; step < 4; ++step) {
    const Tensor x = random::RandomGenerator::from_seed(static_cast<uint64_t>(step)).normal(input);
    strategy.run([&](distribute::ReplicaContext& context) {
      const Tensor own = context.replica_id_in_sync_group() == 0 ? x.slice(0, 0, of_first)
                                                                 : x.slice(0, of_first, input[0]);
      GradientTape tape;
      const Tensor loss = model(own, {.training = true}).square().mean();
      optimizer.minimize(loss, model.trainable_variables(), tape);
    });
  }
  EXPECT_THAT(model.explain(), ::testing::HasSubstr("ran 4 times"));
  const auto weights = strategy.run([&] {
    std::vector<Tensor> values;
    for (const Variable& variable : model.trainable_variables()) {
      values.push_back(variable.value().detach().flatten().clone());
    }
    return at::cat(values);
  });
  return {weights.values()[0], weights.values()[1]};
}

}  // namespace cohort::keras
