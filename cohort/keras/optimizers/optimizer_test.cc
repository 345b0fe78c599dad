#include "cohort/keras/optimizers/optimizer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/optimizers/optimizers.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"

namespace cohort::keras::optimizers {
namespace {

using distribute::mirrored;
using distribute::PerReplica;
using distribute::ReplicaContext;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Variable variable(const std::string& name, double value = 1) {
  return Variable(at::full({2}, value), {.name = name});
}
Tensor gradient(double value) { return at::full({2}, value); }

TEST(Optimizer, UpdatesOutsideOfAnyStrategy) {
  const SGD sgd({.learning_rate = 0.5});
  const Variable w = variable("w", 1);
  sgd.apply_gradients({{gradient(1), w}});
  EXPECT_THAT(elements(w.value()), Each(0.5));
  EXPECT_EQ(sgd.iterations().value().item<int64_t>(), 1);
  sgd.apply_gradients({});
  EXPECT_EQ(sgd.iterations().value().item<int64_t>(), 1);
}

TEST(Optimizer, MinimizeFollowsTheGradient) {
  const SGD sgd({.learning_rate = 0.25});
  const Variable w = variable("w", 3);
  GradientTape tape;
  const Tensor loss = w.value().square().sum();
  sgd.minimize(loss, {w}, tape);
  EXPECT_THAT(elements(w.value()), Each(1.5));
}

TEST(Optimizer, AdamAndRMSpropTakeTheirFirstStepsAsKeras) {
  const Variable a = variable("a", 1);
  Adam({.learning_rate = 0.1}).apply_gradients({{gradient(10), a}});
  EXPECT_THAT(elements(a.value()), Each(DoubleNear(0.9, 1e-5)));
  const Variable r = variable("r", 1);
  RMSprop({.learning_rate = 0.1}).apply_gradients({{gradient(10), r}});
  EXPECT_THAT(elements(r.value()), Each(DoubleNear(1 - 0.1 / std::sqrt(0.1), 1e-5)));
}

// Processors take a hundred times as long for them.
TEST(Optimizer, SlotsOfAVariableWithoutGradientsDoNotShrinkToDenormals) {
  const Variable w = variable("w", 1);
  for (const Optimizer& optimizer : {Optimizer(Adam()), Optimizer(SGD({.momentum = 0.9}))}) {
    optimizer.apply_gradients({{gradient(1), w}});
    for (int i = 0; i < 1200; ++i) optimizer.apply_gradients({{gradient(0), w}});
    for (const Variable& slot : optimizer.variables()) {
      for (const double value : elements(slot.value())) {
        const double size = std::abs(value);
        EXPECT_TRUE(size == 0 || size >= std::numeric_limits<float>::min()) << slot.name();
      }
    }
  }
}

TEST(Optimizer, SumsGradientsOverReplicasUnlessToldOtherwise) {
  for (const bool skip : {false, true}) {
    const auto strategy = mirrored(3);
    const auto scope = strategy.scope();
    const Variable w = variable("w", 10);
    const SGD sgd({.learning_rate = 1});
    strategy.run([&](ReplicaContext& context) {
      const double mine = skip ? 1 : context.replica_id_in_sync_group() + 1;
      sgd.apply_gradients({{gradient(mine), w}}, {.skip_gradients_aggregation = skip});
    });
    const auto components = w.components();
    for (const Tensor& one : components.values()) EXPECT_THAT(elements(one), Each(skip ? 9 : 4));
    EXPECT_EQ(sgd.iterations().value().item<int64_t>(), 1);
  }
}

TEST(Optimizer, AllReplicasSeeTheSameIterations) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable w = variable("w");
  const Adam adam;
  for (int64_t step = 0; step < 5; ++step) {
    const auto seen = strategy.run([&] {
      const auto before = adam.iterations().value().item<int64_t>();
      adam.apply_gradients({{gradient(1), w}});
      return before;
    });
    EXPECT_EQ(seen.value(0), step);
    EXPECT_EQ(seen.value(1), step);
  }
  const auto counts = adam.iterations().components();
  EXPECT_EQ(counts.value(0).item<int64_t>(), 5);
  EXPECT_EQ(counts.value(1).item<int64_t>(), 5);
}

// Four steps on variables of several buckets, one of them with a sparse gradient and one that only
// the last replica uses; the values afterwards.
std::vector<Tensor> train_some_steps(int replicas, bool minimize) {
  random::set_seed(3);
  const auto strategy = mirrored(replicas);
  std::optional<Adam> adam;
  std::vector<Variable> variables;
  {
    auto scope = strategy.scope();
    adam.emplace(AdamOptions{.learning_rate = 0.1});
    variables = {Variable(random::normal({50, 8})), Variable(random::normal({8, 600})),
                 Variable(random::normal({600, 300})), Variable(random::normal({300}))};
  }
  for (int step = 0; step < 4; ++step) {
    strategy.run([&](ReplicaContext& context) {
      const int replica = context.replica_id_in_sync_group();
      GradientTape tape;
      const Tensor ids = at::arange(replica, 10 + replica);
      Tensor x = at::embedding(variables[0].value(), ids, -1, false, /*sparse=*/true);
      x = x.matmul(variables[1].value()).tanh().matmul(variables[2].value());
      if (replica == replicas - 1) x = x + variables[3].value();
      const Tensor loss = x.square().mean();
      if (minimize) {
        adam->minimize(loss, variables, tape);
      } else {
        adam->apply_gradients(zip(tape.gradient(loss, variables), variables));
      }
    });
  }
  std::vector<Tensor> values;
  for (const Variable& variable : variables) values.push_back(variable.value().detach().clone());
  return values;
}

TEST(Optimizer, MinimizeIsBitwiseGradientAndApplyGradients) {
  for (const int replicas : {1, 2, 3}) {
    const auto ours = train_some_steps(replicas, true);
    const auto theirs = train_some_steps(replicas, false);
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_TRUE(ours[i].equal(theirs[i])) << replicas << " replicas, variable " << i;
    }
  }
}

// Views and sums hand one gradient to several variables; it must not be written to.
TEST(Optimizer, MinimizeWritesToNoGradientThatVariablesShare) {
  for (const bool persistent : {false, true}) {
    const auto train = [&](bool minimize) {
      const auto strategy = mirrored(2);
      auto scope = strategy.scope();
      const SGD sgd({.learning_rate = 0.5});
      const std::vector<Variable> all{variable("a", 1), variable("b", 2), variable("c", 3)};
      scope.close();
      for (int step = 0; step < 20; ++step) {
        strategy.run([&](ReplicaContext& context) {
          GradientTape tape({.persistent = persistent});
          Tensor sum = all[0].value().unsqueeze(0) + all[1].value().unsqueeze(0);
          sum = sum + all[2].value();
          const Tensor loss = (sum * (1.0 + context.replica_id_in_sync_group())).sum();
          if (minimize) {
            sgd.minimize(loss, all, tape);
          } else {
            sgd.apply_gradients(zip(tape.gradient(loss, all), all));
          }
        });
      }
      std::vector<Tensor> values;
      for (const Variable& one : all) values.push_back(one.value().detach().clone());
      return values;
    };
    const auto ours = train(true);
    const auto theirs = train(false);
    for (size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(ours[i].equal(theirs[i])) << i;
  }
}

TEST(Optimizer, TwoOptimizersMayMinimizeOverOneVariable) {
  const auto strategy = mirrored(2);
  auto scope = strategy.scope();
  const SGD first({.learning_rate = 1});
  const SGD second({.learning_rate = 10});
  const Variable a = variable("a", 0);
  const Variable b = variable("b", 0);
  scope.close();
  strategy.run([&] {
    GradientTape tape;
    first.minimize((a.value() + b.value()).sum(), {a, b}, tape);
    GradientTape other;
    second.minimize(a.value().sum(), {a}, other);
  });
  EXPECT_THAT(elements(a.value()), Each(-22));
  EXPECT_THAT(elements(b.value()), Each(-2));
}

TEST(Optimizer, VariablesOfDtypesWithoutARuleAreRefusedBeforeAnythingChanges) {
  const SGD sgd({.learning_rate = 1});
  const Variable half(at::ones({2}, at::kHalf), {.name = "half"});
  const Variable single = variable("single", 1);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                sgd.apply_gradients({{gradient(1), single}, {at::ones({2}, at::kHalf), half}});
              }),
              HasSubstr("'half'"));
  EXPECT_THAT(elements(single.value()), Each(1));
}

TEST(Optimizer, AStepThatFailsInItsBackwardPassChangesNothingAndTheNextOneIsWhole) {
  const auto strategy = mirrored(2);
  auto scope = strategy.scope();
  const SGD sgd({.learning_rate = 1});
  const Variable a = variable("a", 1);
  const Variable b = variable("b", 1);
  scope.close();
  const auto step = [&](bool fail) {
    strategy.run([&, fail](ReplicaContext& context) {
      GradientTape tape;
      Tensor x = a.value() * 2;
      if (fail && context.replica_id_in_sync_group() == 1) {
        x.register_hook([](const Tensor&) -> Tensor { throw AbortedError("lost"); });
      }
      sgd.minimize((x * b.value()).sum(), {a, b}, tape);
    });
  };
  step(false);
  const Tensor before = a.value().detach().clone();
  EXPECT_THROW(step(true), Error);
  EXPECT_TRUE(a.value().equal(before));
  step(false);
  EXPECT_FALSE(a.value().equal(before));
}

TEST(Optimizer, SlotsAreMadeOnceForAVariable) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable a = variable("a");
  const Variable b = variable("b");
  const Adam adam;
  adam.build({a});
  EXPECT_THAT(adam.variables(), SizeIs(3));
  EXPECT_EQ(adam.variables()[1].name(), "Adam/m/a");
  strategy.run([&] { adam.apply_gradients({{gradient(1), a}, {gradient(1), b}}); });
  strategy.run([&] { adam.apply_gradients({{gradient(1), b}}); });
  EXPECT_THAT(adam.variables(), SizeIs(5));
  EXPECT_EQ(adam.iterations().value().item<int64_t>(), 2);
}

TEST(Optimizer, LearningRateCanBeSetOrFollowASchedule) {
  const SGD sgd({.learning_rate = 1});
  const Variable w = variable("w", 0);
  sgd.set_learning_rate(0.5);
  EXPECT_EQ(sgd.learning_rate(), 0.5);
  sgd.apply_gradients({{gradient(-1), w}});
  EXPECT_THAT(elements(w.value()), Each(0.5));

  const SGD scheduled({.learning_rate = optim::PiecewiseConstantDecay({0}, {2, 1})});
  scheduled.apply_gradients({{gradient(-1), w}});
  EXPECT_THAT(elements(w.value()), Each(2.5));
  EXPECT_EQ(scheduled.learning_rate(), 1);
  scheduled.apply_gradients({{gradient(-1), w}});
  EXPECT_THAT(elements(w.value()), Each(3.5));
  EXPECT_THROW(scheduled.set_learning_rate(1), FailedPreconditionError);
  EXPECT_THROW(sgd.set_learning_rate(std::numeric_limits<double>::quiet_NaN()),
               InvalidArgumentError);
}

TEST(Optimizer, ANegativeLearningRateIsWarnedOf) {
  testing::internal::CaptureStderr();
  const SGD sgd({.learning_rate = -1});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the learning rate is -1"));
  EXPECT_EQ(sgd.learning_rate(), -1);
  testing::internal::CaptureStderr();
  sgd.set_learning_rate(-0.5);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the learning rate is -0.5"));
  EXPECT_THROW(sgd.set_learning_rate(std::nan("")), InvalidArgumentError);
}

TEST(Optimizer, ANegativeLearningRateGoesUpTheGradient) {
  Variable w({1., 2.});
  const SGD sgd(-0.5);
  sgd.apply_gradients({{gradient(2), w}});
  EXPECT_THAT(elements(w.value()), ElementsAre(2, 3));
  Adam(-0.5).apply_gradients({{gradient(2), w}});
  EXPECT_THAT(elements(w.value()), ElementsAre(DoubleNear(2.5, 1e-5), DoubleNear(3.5, 1e-5)));
}

TEST(Optimizer, AMissingGradientCountsAsZero) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable a = variable("a", 1);
  const Variable b = variable("b", 1);
  const Variable never = variable("never", 1);
  const SGD sgd({.learning_rate = 1});
  strategy.run([&](ReplicaContext& context) {
    const bool first = context.replica_id_in_sync_group() == 0;
    sgd.apply_gradients({{gradient(1), a}, {first ? gradient(3) : Tensor(), b}, {Tensor(), never}});
  });
  EXPECT_THAT(elements(a.value()), Each(-1));
  EXPECT_THAT(elements(b.value()), Each(-2));
  EXPECT_THAT(elements(never.value()), Each(1));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                strategy.run([&] { sgd.apply_gradients({{Tensor(), a}}); });
              }),
              HasSubstr("'a'"));
}

TEST(Optimizer, CrossReplicaContextIsRefused) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable w = variable("w");
  const SGD sgd;
  EXPECT_THAT(thrown<FailedPreconditionError>([&] {
                sgd.apply_gradients({{gradient(1), w}});
              }),
              AllOf(HasSubstr("cross-replica"), HasSubstr("strategy.run")));
}

TEST(Optimizer, VariablesOfAnotherStrategyAreRefused) {
  const auto strategy = mirrored(2);
  const Variable outside = variable("outside");
  const SGD sgd;
  EXPECT_THAT(thrown<FailedPreconditionError>([&] {
                strategy.run([&] { sgd.apply_gradients({{gradient(1), outside}}); });
              }),
              AllOf(HasSubstr("'outside'"), HasSubstr("MirroredStrategy")));
  Variable inside;
  {
    const auto scope = strategy.scope();
    inside = variable("inside");
  }
  const SGD other;
  EXPECT_THAT(thrown<FailedPreconditionError>([&] {
                other.apply_gradients({{gradient(1), inside}});
              }),
              HasSubstr("'inside'"));
}

TEST(Optimizer, ReplicasWithDifferentVariablesAreAnError) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable a = variable("a");
  const Variable b = variable("b");
  const SGD sgd;
  const auto differ = [&](ReplicaContext& context) {
    const bool first = context.replica_id_in_sync_group() == 0;
    sgd.apply_gradients({{gradient(1), first ? a : b}});
  };
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { strategy.run(differ); }),
              AllOf(HasSubstr("'a'"), HasSubstr("'b'"), HasSubstr("replica 1")));
  // Also where both lists have been seen before; and the strategy stays usable.
  strategy.run([&] { sgd.apply_gradients({{gradient(1), a}}); });
  strategy.run([&] { sgd.apply_gradients({{gradient(1), b}}); });
  EXPECT_THROW(strategy.run(differ), InvalidArgumentError);
  strategy.run([&] { sgd.apply_gradients({{gradient(1), a}}); });
  EXPECT_EQ(sgd.iterations().value().item<int64_t>(), 3);
}

TEST(Optimizer, AVariableTwiceAndAWrongShapeAreErrors) {
  const SGD sgd;
  const Variable w = variable("w");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                sgd.apply_gradients({{gradient(1), w}, {gradient(1), w}});
              }),
              HasSubstr("'w'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                sgd.apply_gradients({{at::ones({3}), w}});
              }),
              AllOf(HasSubstr("'w'"), HasSubstr("[3]")));
}

TEST(Optimizer, TheLearningRateMayStandAlone) {
  EXPECT_DOUBLE_EQ(Adam(0.5).learning_rate(), 0.5);
  EXPECT_DOUBLE_EQ(SGD(1).learning_rate(), 1);
  const optim::ExponentialDecay schedule(
      {.initial_learning_rate = 0.25, .decay_steps = 10, .decay_rate = 0.5});
  EXPECT_DOUBLE_EQ(RMSprop(schedule).learning_rate(), 0.25);
}

TEST(Optimizer, TheNextNumbersMayFollowAsInKeras) {
  EXPECT_EQ(SGD(0.5, 0.9).serialize(), SGD({.learning_rate = 0.5, .momentum = 0.9}).serialize());
  EXPECT_EQ(Adam(0.5, 0.8, 0.99).serialize(),
            Adam({.learning_rate = 0.5, .beta_1 = 0.8, .beta_2 = 0.99}).serialize());
  EXPECT_EQ(RMSprop(0.5, 0.8).serialize(), RMSprop({.learning_rate = 0.5, .rho = 0.8}).serialize());
}

}  // namespace
}  // namespace cohort::keras::optimizers
