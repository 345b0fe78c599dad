// What every optimizer can do beside its formula: clipping, decay, averages, accumulation.
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/keras/optimizers/optimizers.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras::optimizers {
namespace {

using distribute::mirrored;
using distribute::ReplicaContext;
using distribute::Strategy;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Variable weights(const std::vector<double>& values) {
  return Variable(numbers(values), {.name = "weights"});
}

TEST(Clipping, IsOfWhatIsSummedOverReplicas) {
  const auto clipped = [](const SGDOptions& options) {
    const auto strategy = mirrored(2);
    const auto scope = strategy.scope();
    const Variable a = weights({0, 0});
    const Variable b = weights({0});
    const SGD sgd(options);
    strategy.run([&] {  // sums: (6, 8) of norm 10, and 24
      sgd.apply_gradients({{numbers({3, 4}), a}, {numbers({12}), b}});
    });
    std::vector<double> values = elements(a.value());
    values.push_back(b.value().item<double>());
    return values;
  };
  EXPECT_THAT(clipped({.learning_rate = 1, .clipnorm = 5}), ElementsAre(-3, -4, -5));
  EXPECT_THAT(clipped({.learning_rate = 1, .clipvalue = 7}), ElementsAre(-6, -7, -7));
  EXPECT_THAT(clipped({.learning_rate = 1, .global_clipnorm = 13}),
              Pointwise(DoubleNear(1e-5), {-3, -4, -12}));
  EXPECT_THAT(clipped({.learning_rate = 1, .clipnorm = 100}), ElementsAre(-6, -8, -24));
}

// Nothing is left to go on from, which a program notices.
TEST(Clipping, OfWhatIsNotFiniteIsNotANumberAsInKeras) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto are_numbers = [](const SGDOptions& options, double bad) {
    const auto strategy = mirrored(2);
    const auto scope = strategy.scope();
    const Variable a = weights({0, 0});
    const Variable b = weights({0});
    const SGD sgd(options);
    strategy.run([&] { sgd.apply_gradients({{numbers({bad, 4}), a}, {numbers({12}), b}}); });
    std::vector<bool> are_numbers;
    for (const Variable& variable : {a, b}) {
      for (const double value : elements(variable.value())) {
        are_numbers.push_back(!std::isnan(value));
      }
    }
    return are_numbers;
  };
  EXPECT_THAT(are_numbers({.global_clipnorm = 1}, kNaN), ElementsAre(false, false, false));
  EXPECT_THAT(are_numbers({.global_clipnorm = 1}, kInfinity), ElementsAre(false, false, false));
  EXPECT_THAT(are_numbers({.clipnorm = 1}, kNaN), ElementsAre(false, false, true));
  EXPECT_THAT(are_numbers({.clipnorm = 1}, kInfinity), ElementsAre(false, true, true));
}

TEST(Clipping, IsOfOneKindAtATime) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { SGD({.clipnorm = 1, .clipvalue = 2}); }),
              AllOf(HasSubstr("at most one"), HasSubstr("1, 2 and 0")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Adam({.clipnorm = -1}); }), HasSubstr("clipnorm"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Adam({.weight_decay = -1}); }),
              HasSubstr("weight_decay"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Adam({.gradient_accumulation_steps = 0}); }),
              HasSubstr("gradient_accumulation_steps"));
}

// A NaN of one replica, of two.
TEST(NotFiniteGradients, AreSkippedOrRaisedAlikeOnAllReplicas) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const auto step = [&](const Optimizer& optimizer, const Variable& w, double of_second) {
    strategy.run([&](const distribute::ReplicaContext& replica) {
      const double value = replica.replica_id_in_sync_group() == 1 ? of_second : 1;
      optimizer.apply_gradients({{numbers({1, value}), w}});
    });
  };
  const Variable skipped = weights({8, 4});
  const SGD skips({.learning_rate = 1, .not_finite = NotFinite::SKIP});
  ::testing::internal::CaptureStderr();
  step(skips, skipped, kNaN);
  step(skips, skipped, std::numeric_limits<double>::infinity());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("are not finite"));
  EXPECT_THAT(elements(skipped.value()), ElementsAre(8, 4));
  EXPECT_EQ(skips.skipped_updates(), 2);
  EXPECT_EQ(skips.iterations().value().item<int64_t>(), 0);
  step(skips, skipped, 1);
  EXPECT_THAT(elements(skipped.value()), ElementsAre(6, 2));
  EXPECT_EQ(skips.iterations().value().item<int64_t>(), 1);

  const Variable raised = weights({8, 4});
  const SGD raises({.learning_rate = 1, .not_finite = NotFinite::RAISE});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { step(raises, raised, kNaN); }),
              AllOf(HasSubstr("'SGD'"), HasSubstr("after 0 updates")));
  EXPECT_THAT(elements(raised.value()), ElementsAre(8, 4));

  const Variable broken = weights({8, 4});
  step(SGD(1.0), broken, kNaN);
  EXPECT_TRUE(std::isnan(elements(broken.value())[1]));
}

TEST(MovingAverage, StartsAsTheVariableAndReplacesItAtTheEnd) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable w = weights({8, 4});
  const SGD sgd({.learning_rate = 1, .use_ema = true, .ema_momentum = 0.5});
  strategy.run([&] { sgd.apply_gradients({{numbers({1, 1}), w}}); });
  EXPECT_THAT(elements(w.value()), ElementsAre(6, 2));
  EXPECT_EQ(sgd.variables()[1].name(), "SGD/average/weights");
  EXPECT_THAT(elements(sgd.variables()[1].value()), ElementsAre(7, 3));
  sgd.finalize_variable_values({w});
  EXPECT_THAT(elements(w.value()), ElementsAre(7, 3));
  EXPECT_THROW(sgd.finalize_variable_values({weights({1})}), NotFoundError);
  EXPECT_THROW(SGD().finalize_variable_values({w}), FailedPreconditionError);
}

TEST(MovingAverage, OfRMSpropReplacesTheVariableEveryHundredUpdates) {
  const auto strategy = mirrored(1);
  const auto scope = strategy.scope();
  const Variable w = weights({8});
  const RMSprop optimizer({.use_ema = true, .ema_momentum = 1});  // an average that stays
  for (int update = 1; update <= 100; ++update) {
    strategy.run([&] { optimizer.apply_gradients({{numbers({1}), w}}); });
    EXPECT_EQ(elements(w.value())[0] == 8, update == 100) << update;
  }
}

// Steps of an optimizer on a dense variable and a sparsely used table, on so many replicas.
std::vector<Tensor> train(const Strategy& strategy, const Optimizer& optimizer, int steps,
                          int replicas) {
  std::vector<Variable> variables;
  {
    auto scope = strategy.scope();
    variables = {Variable(at::arange(12).to(float32).reshape({6, 2}), {.name = "table"}),
                 Variable(at::full({2, 3}, 0.5), {.name = "kernel"})};
  }
  for (int step = 0; step < steps; ++step) {
    strategy.run([&](ReplicaContext& context) {
      GradientTape tape;
      // Each step of one replica has the rows of a step of two.
      const int64_t first = step % 2 + (replicas == 1 ? 0 : context.replica_id_in_sync_group());
      const Tensor ids = at::arange(first, first + (replicas == 1 ? 2 : 1));
      const Tensor rows =
          at::embedding(variables[0].value(), ids, -1, false, /*sparse=*/true) * 0.1;
      const Tensor loss = rows.matmul(variables[1].value()).tanh().sum();
      optimizer.minimize(loss, variables, tape);
    });
  }
  return {variables[0].value().detach().clone(), variables[1].value().detach().clone()};
}

struct NamedOptimizer {
  const char* name;
  std::function<Optimizer()> make;
};

class EveryOptimizer : public ::testing::TestWithParam<NamedOptimizer> {};

TEST_P(EveryOptimizer, OnTwoReplicasIsThatOnOneWithTheWholeBatch) {
  const auto run = [&](int replicas) {
    const auto strategy = mirrored(replicas);
    std::optional<Optimizer> optimizer;
    {
      auto scope = strategy.scope();
      optimizer.emplace(GetParam().make());
    }
    return train(strategy, *optimizer, 6, replicas);
  };
  const auto one = run(1);
  const auto two = run(2);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_THAT(elements(two[i]), Pointwise(DoubleNear(1e-5), elements(one[i]))) << i;
  }
  EXPECT_FALSE(at::equal(one[1], at::full({2, 3}, 0.5)));
}

TEST_P(EveryOptimizer, GoesOnFromACheckpointAsIfNothingHadHappened) {
  const auto strategy = mirrored(2);
  const std::string prefix = ::testing::TempDir() + "common_options_" + GetParam().name;
  const auto run = [&](bool interrupted) {
    auto scope = strategy.scope();
    const Variable w(numbers({1, -2, 3}), {.name = "w"});
    std::optional<Optimizer> optimizer(GetParam().make());
    scope.close();
    const auto step = [&](double gradient) {
      strategy.run([&] { optimizer->apply_gradients({{at::full({3}, gradient), w}}); });
    };
    for (const double gradient : {0.5, -1.5, 0.25}) step(gradient);
    if (interrupted) {
      const std::string path =
          train::Checkpoint({{"optimizer", *optimizer}, {"w", w}}).write(prefix);
      step(100);
      auto again = strategy.scope();
      optimizer.emplace(GetParam().make());
      again.close();
      train::Checkpoint({{"optimizer", *optimizer}, {"w", w}}).read(path);
    }
    for (const double gradient : {-0.75, 2.0}) step(gradient);
    return w.value().detach().clone();
  };
  EXPECT_TRUE(at::equal(run(true), run(false)));
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, EveryOptimizer,
    ::testing::Values(
        NamedOptimizer{"adadelta", [] { return Adadelta({.learning_rate = 1}); }},
        NamedOptimizer{"adagrad", [] { return Adagrad({.learning_rate = 0.1}); }},
        NamedOptimizer{"adam", [] { return Adam({.learning_rate = 0.1}); }},
        NamedOptimizer{"adamw", [] { return AdamW({.learning_rate = 0.1}); }},
        NamedOptimizer{"adamax", [] { return Adamax({.learning_rate = 0.1}); }},
        NamedOptimizer{"lion", [] { return Lion({.learning_rate = 0.1}); }},
        NamedOptimizer{"nadam", [] { return Nadam({.learning_rate = 0.1}); }},
        NamedOptimizer{"ftrl", [] { return Ftrl({.learning_rate = 0.1}); }},
        NamedOptimizer{
            "rmsprop",
            [] { return RMSprop({.learning_rate = 0.1, .momentum = 0.5, .centered = true}); }},
        NamedOptimizer{"clipped", [] { return Adam({.learning_rate = 0.1, .clipnorm = 0.1}); }},
        NamedOptimizer{"averaged",
                       [] {
                         return SGD({.learning_rate = 0.1,
                                     .use_ema = true,
                                     .ema_momentum = 0.5,
                                     .ema_overwrite_frequency = 2});
                       }},
        NamedOptimizer{
            "accumulating",
            [] { return Adam({.learning_rate = 0.1, .gradient_accumulation_steps = 2}); }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(GradientAccumulation, UpdatesWithTheMeanOfSeveralCalls) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable w = weights({0});
  const SGD sgd({.learning_rate = 1, .clipvalue = 10, .gradient_accumulation_steps = 3});
  for (const double gradient : {3.0, 6.0, 9.0, 30.0, 0.0}) {
    strategy.run([&](ReplicaContext& context) {
      const bool first = context.replica_id_in_sync_group() == 0;
      sgd.apply_gradients({{numbers({first ? gradient : 0}), w}});
    });
  }
  EXPECT_EQ(w.value().item<double>(), -6);
  EXPECT_EQ(sgd.iterations().value().item<int64_t>(), 1);
  strategy.run([&] { sgd.apply_gradients({{numbers({15}), w}}); });
  EXPECT_EQ(w.value().item<double>(), -16);  // (30 + 2 * 15) / 3 = 20 is clipped
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                strategy.run([&] { sgd.apply_gradients({{Tensor(), w}}); });
              }),
              HasSubstr("'weights'"));
}

// What was added up for variables that are left out would get into a later update.
TEST(GradientAccumulation, CallsOfOneUpdateBringTheSameVariables) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable a(numbers({1}), {.name = "a"});
  const Variable b(numbers({1}), {.name = "b"});
  const SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = 2});
  const auto apply = [&](const std::vector<Variable>& variables) {
    strategy.run([&] {
      GradientsAndVariables gradients;
      for (const Variable& variable : variables) gradients.emplace_back(numbers({1}), variable);
      sgd.apply_gradients(gradients);
    });
  };
  apply({a, b});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { apply({b}); }),
              AllOf(HasSubstr("first brought those of 'a', 'b'"), HasSubstr("this one of 'b'"),
                    HasSubstr("optimizer for each list")));
  apply({b, a});  // in any order
  EXPECT_EQ(a.value().item<double>(), -1);
  apply({b});  // another update
  apply({b});
  EXPECT_EQ(a.value().item<double>(), -1);
  EXPECT_EQ(b.value().item<double>(), -3);
  apply({a});
  apply({a});
  EXPECT_EQ(a.value().item<double>(), -3);
}

TEST(GradientAccumulation, BeginsAnewAfterGradientsThatAreNotFinite) {
  const Variable w = weights({0});
  const SGD sgd(
      {.learning_rate = 1, .gradient_accumulation_steps = 2, .not_finite = NotFinite::RAISE});
  sgd.apply_gradients({{numbers({NAN}), w}});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                sgd.apply_gradients({{numbers({1}), w}});
              }),
              HasSubstr("not finite"));
  for (int i = 0; i < 4; ++i) sgd.apply_gradients({{numbers({1}), w}});
  EXPECT_EQ(sgd.iterations().value().item<int64_t>(), 2);
  EXPECT_EQ(w.value().item<double>(), -2);
}

TEST(GradientAccumulation, AddsNothingInACallThatIsRefused) {
  const Variable a(numbers({0}), {.name = "a"});
  const Variable b(numbers({0}), {.name = "b"});
  const SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = 2});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                sgd.apply_gradients({{numbers({1}), a}, {numbers({1, 1}), b}});
              }),
              AllOf(HasSubstr("'b'"), HasSubstr("[2]")));
  for (int i = 0; i < 2; ++i) sgd.apply_gradients({{numbers({1}), a}, {numbers({1}), b}});
  EXPECT_EQ(a.value().item<double>(), -1);
  EXPECT_EQ(b.value().item<double>(), -1);
}

TEST(GradientAccumulation, OverTasksIsThatOfOneProcess) {
  const auto make = [] {
    return Adam({.learning_rate = 0.1, .global_clipnorm = 0.5, .gradient_accumulation_steps = 2});
  };
  const auto strategy = mirrored(2);
  auto scope = strategy.scope();
  const Adam alone = make();
  scope.close();
  const auto expected = train(strategy, alone, 6, 2);
  std::vector<std::vector<Tensor>> values(2);
  distribute::run_all_tasks(2, 1, [&](const Strategy& task_strategy, int task) {
    auto task_scope = task_strategy.scope();
    const Adam adam = make();
    task_scope.close();
    values[static_cast<size_t>(task)] = train(task_strategy, adam, 6, 2);
  });
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(at::equal(values[0][i], values[1][i])) << i;
    EXPECT_THAT(elements(values[0][i]), Pointwise(DoubleNear(1e-5), elements(expected[i]))) << i;
  }
}

TEST(GetOptimizer, KnowsNamesInAnyCase) {
  EXPECT_EQ(get("adam").name(), "Adam");
  EXPECT_EQ(get("RMSprop").name(), "RMSprop");
  EXPECT_THAT(thrown<InvalidArgumentError>([] { get("rmspop"); }),
              AllOf(HasSubstr("'rmspop'"), HasSubstr("'rmsprop'"), HasSubstr("Nadam")));
}

}  // namespace
}  // namespace cohort::keras::optimizers
