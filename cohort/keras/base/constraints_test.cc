#include "cohort/keras/base/constraints.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"

namespace cohort::keras::constraints {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Constraints, AreKnownByKerasNames) {
  const Tensor w = numbers({-3, 4, 0, 0}, {2, 2});
  for (const char* name : {"non_neg", "nonneg", "NonNeg"}) {
    EXPECT_THAT(elements(Constraint(name)(w)), ::testing::ElementsAre(0, 4, 0, 0));
  }
  EXPECT_TRUE(Constraint("max_norm")(w).equal(MaxNorm()(w)));
  EXPECT_TRUE(Constraint("UnitNorm")(w).equal(UnitNorm()(w)));
  EXPECT_TRUE(Constraint("min_max_norm")(w).equal(MinMaxNorm()(w)));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Constraint("max_nrom"); }),
              AllOf(HasSubstr("constraint"), HasSubstr("max_norm")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { MaxNorm(-1); }), HasSubstr("MaxNorm: -1"));
  EXPECT_FALSE(Constraint());
}

TEST(Constraints, AreWrittenAsKerasWritesThem) {
  EXPECT_EQ(MaxNorm(3, {0, 1}).serialize()->get_config("config").json(),
            R"({"axis":[0,1],"max_value":3.0})");
  EXPECT_EQ(UnitNorm().serialize()->get_config("config").json(), R"({"axis":0})");
  const layers::Dense dense(2, {.kernel_constraint = [](const Tensor& w) { return w.tanh(); }});
  EXPECT_THAT(thrown<UnimplementedError>([&] { dense.get_config(); }),
              HasSubstr("constraint is a function of the program"));
}

TEST(Constraints, NameTheWeightThatTheyDoNotFit) {
  const layers::Dense dense(2, {.kernel_constraint = MaxNorm(1, {2}), .name = "flat"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                dense(numbers({1, 2}, {1, 2}));
              }),
              AllOf(HasSubstr("'kernel' of layer 'flat'"), HasSubstr("axis 2")));
}

// The weights of a small model after five steps, of which each replica takes its part.
std::vector<Tensor> trained(const distribute::Strategy& strategy, int64_t replicas,
                            const std::function<Sequential()>& make, const Tensor& inputs,
                            const optimizers::SGDOptions& options) {
  random::set_seed(4);
  const auto scope = strategy.scope();
  const Sequential model = make();
  const optimizers::SGD optimizer(options);
  for (int step = 0; step < 5; ++step) {
    strategy.run([&](distribute::ReplicaContext& context) {
      const int64_t rows = inputs.size(0) / replicas;
      const Tensor own = inputs.narrow(0, rows * context.replica_id_in_sync_group(), rows);
      GradientTape tape;
      const Tensor loss = (model(own, {.training = true}) - 1).square().sum();
      optimizer.apply_gradients(
          zip(tape.gradient(loss, model.trainable_variables()), model.trainable_variables()));
    });
  }
  std::vector<Tensor> values;
  for (const Variable& variable : model.trainable_variables()) {
    const auto components = variable.components();
    for (const Tensor& component : components.values()) {
      EXPECT_TRUE(at::equal(component, variable.value().detach()));
    }
    values.push_back(variable.value().detach().clone());
  }
  return values;
}

void expect_kept_on_replicas(const std::function<Sequential()>& make, const Tensor& inputs,
                             const optimizers::SGDOptions& options) {
  const auto alone = trained(distribute::mirrored(1), 1, make, inputs, options);
  for (const bool shared : {false, true}) {
    const auto together =
        trained(distribute::mirrored(2, {.shared_storage = shared}), 2, make, inputs, options);
    ASSERT_EQ(alone.size(), together.size());
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_TRUE(together[i].allclose(alone[i], 1e-5, 1e-6)) << "variable " << i;
    }
  }
  const Tensor& kernel = alone[0];
  EXPECT_TRUE(kernel.square().sum(1).le(0.25001).all().item<bool>());
  EXPECT_TRUE(alone.back().ge(0).all().item<bool>());
}

TEST(Constraints, HoldAfterEachUpdateOfEveryReplica) {
  const auto make = [] {
    return Sequential(
        {layers::Dense(6, {.activation = "tanh", .kernel_constraint = MaxNorm(0.5, {1})}),
         layers::Dense(1, {.bias_constraint = NonNeg()})});
  };
  const Tensor x = random::RandomGenerator::from_seed(1).normal({8, 4});
  expect_kept_on_replicas(make, x, {.learning_rate = 0.2});
  expect_kept_on_replicas(make, x, {.learning_rate = 0.2, .momentum = 0.9, .global_clipnorm = 1});
}

// All rows of the table, also those without a gradient, as in Keras.
TEST(Constraints, HoldForAllRowsOfATable) {
  const auto make = [] {
    return Sequential(
        {layers::Embedding(
             9, 3, {.embeddings_initializer = "ones", .embeddings_constraint = MaxNorm(0.5, {1})}),
         layers::Flatten(), layers::Dense(1, {.bias_constraint = "non_neg"})});
  };
  expect_kept_on_replicas(make, at::arange(8, at::kLong).reshape({4, 2}) % 5,
                          {.learning_rate = 0.1});
}

TEST(Constraints, LeaveVariablesWithoutAGradientAlone) {
  const Variable used(numbers({-1, 1}), {.constraint = NonNeg()});
  const Variable unused(numbers({-1, 1}), {.constraint = NonNeg()});
  const Variable own(numbers({3}), {.constraint = [](const Tensor& w) { return w.clamp(0, 2); }});
  const optimizers::SGD sgd({.learning_rate = 1});
  sgd.apply_gradients({{numbers({0, 0}), used}, {Tensor(), unused}, {numbers({0}), own}});
  EXPECT_THAT(elements(used.value()), ::testing::ElementsAre(0, 1));
  EXPECT_THAT(elements(unused.value()), ::testing::ElementsAre(-1, 1));
  EXPECT_THAT(elements(own.value()), ::testing::ElementsAre(2));
}

}  // namespace
}  // namespace cohort::keras::constraints
