#include "cohort/keras/optimizers/loss_scale_optimizer.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/checkpoint_reader.h"

namespace cohort::keras::mixed_precision {
namespace {

using optimizers::SGD;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double scale_of(const LossScaleOptimizer& optimizer) {
  return optimizer.loss_scale().item<double>();
}
int64_t counter_of(const LossScaleOptimizer& optimizer) {
  return optimizer.dynamic_counter().value().item<int64_t>();
}
int64_t iterations_of(const optimizers::Optimizer& optimizer) {
  return optimizer.iterations().value().item<int64_t>();
}

// A step whose unscaled gradient is this number.
void step(const LossScaleOptimizer& optimizer, const Variable& w, double gradient) {
  const Tensor scaled = optimizer.get_scaled_loss(numbers({gradient}));
  optimizer.apply_gradients({{optimizer.get_unscaled_gradients({scaled})[0], w}});
}

TEST(LossScaleOptimizer, FollowsTheGradientsAsKeras) {
  const Variable w(numbers({8}), {.name = "w"});
  const LossScaleOptimizer optimizer(SGD(1.), {.initial_scale = 4, .dynamic_growth_steps = 2});
  EXPECT_TRUE(optimizer.dynamic());
  step(optimizer, w, 1);
  EXPECT_EQ(w.value().item<double>(), 7);
  EXPECT_EQ(scale_of(optimizer), 4);
  EXPECT_EQ(counter_of(optimizer), 1);
  step(optimizer, w, 1);
  EXPECT_EQ(scale_of(optimizer), 8);
  EXPECT_EQ(counter_of(optimizer), 0);
  step(optimizer, w, 1);
  for (const double broken : {kInfinity, std::nan("")}) step(optimizer, w, broken);
  EXPECT_EQ(w.value().item<double>(), 5);
  EXPECT_EQ(scale_of(optimizer), 2);
  EXPECT_EQ(counter_of(optimizer), 0);
  EXPECT_EQ(iterations_of(optimizer), 5) << "steps that are left out count, as in Keras";
  EXPECT_EQ(optimizer.skipped_updates(), 2);
  for (int i = 0; i < 3; ++i) step(optimizer, w, kInfinity);
  EXPECT_EQ(scale_of(optimizer), 1) << "the least";
}

TEST(LossScaleOptimizer, GrowsToWhatFloat32Holds) {
  const Variable w(numbers({0}), {.name = "w"});
  const LossScaleOptimizer optimizer(SGD(1.), {.initial_scale = 3e38, .dynamic_growth_steps = 1});
  step(optimizer, w, 0);
  EXPECT_FLOAT_EQ(static_cast<float>(scale_of(optimizer)), 3e38F);
}

TEST(LossScaleOptimizer, HasKerasDefaults) {
  const LossScaleOptimizer optimizer(SGD(1.));
  EXPECT_EQ(optimizer.initial_scale(), 32768);
  EXPECT_EQ(optimizer.dynamic_growth_steps(), 2000);
  EXPECT_EQ(optimizer.inner_optimizer().name(), "SGD");
  EXPECT_FALSE(LossScaleOptimizer::from(optimizer.inner_optimizer()));
  EXPECT_EQ(scale_of(*LossScaleOptimizer::from(optimizers::Optimizer(optimizer))), 32768);
}

TEST(LossScaleOptimizer, MinimizeScalesByItself) {
  const Variable w(numbers({1e-3}), {.name = "w"});
  const LossScaleOptimizer optimizer(SGD(1.));
  const auto gradient = [&](bool scales) {
    GradientTape tape;
    // A gradient that float16 does not hold unless it is scaled.
    const Tensor loss = (w.value().to(DType::Half) * 1e-4 * 1e-4).to(float32).sum();
    const double before = w.value().item<double>();
    if (scales) {
      optimizer.minimize(loss, {w}, tape);
    } else {
      optimizer.inner_optimizer().minimize(loss, {w}, tape);
    }
    return before - w.value().item<double>();
  };
  EXPECT_NEAR(gradient(true), 1e-8, 1e-9);
  EXPECT_EQ(gradient(false), 0);
  EXPECT_EQ(counter_of(optimizer), 1);
}

TEST(LossScaleOptimizer, UnscalesBeforeItClips) {
  const Variable w(numbers({0, 0}), {.name = "w"});
  for (const bool by_global_norm : {false, true}) {
    w.assign(numbers({0, 0}));
    const SGD inner({.learning_rate = 1,
                     .clipnorm = by_global_norm ? 0. : 2.5,
                     .global_clipnorm = by_global_norm ? 2.5 : 0.});
    const LossScaleOptimizer optimizer(inner, {.initial_scale = 1024});
    GradientTape tape;
    optimizer.minimize((w.value() * numbers({3, 4})).sum(), {w}, tape);
    EXPECT_THAT(elements(w.value()), ElementsAre(-1.5, -2));
  }
}

TEST(LossScaleOptimizer, AFixedScaleLeavesNothingOut) {
  const Variable w(numbers({1}), {.name = "w"});
  const LossScaleOptimizer optimizer(SGD(1.), {.dynamic = false, .initial_scale = 1000});
  EXPECT_FALSE(optimizer.dynamic());
  GradientTape tape;
  optimizer.minimize(w.value().sum() * 2, {w}, tape);
  EXPECT_NEAR(w.value().item<double>(), -1, 1e-6);
  EXPECT_EQ(optimizer.dynamic_growth_steps(), std::nullopt);
  EXPECT_THROW(optimizer.dynamic_counter(), FailedPreconditionError);
  step(optimizer, w, kInfinity);
  EXPECT_TRUE(std::isinf(w.value().item<double>()));
  EXPECT_EQ(scale_of(optimizer), 1000);
}

TEST(LossScaleOptimizer, RefusesOptionsThatDoNotFit) {
  const auto refused = [](const LossScaleOptions& options) {
    return thrown<InvalidArgumentError>([&] { LossScaleOptimizer(SGD(1.), options); });
  };
  EXPECT_THAT(refused({.dynamic = false}), HasSubstr("initial_scale"));
  EXPECT_THAT(refused({.dynamic = false, .initial_scale = 2, .dynamic_growth_steps = 3}),
              HasSubstr("dynamic_growth_steps is 3"));
  EXPECT_THAT(refused({.initial_scale = 0}), HasSubstr("initial_scale is 0"));
  EXPECT_THAT(refused({.initial_scale = kInfinity}), HasSubstr("finite"));
  EXPECT_THAT(refused({.dynamic_growth_steps = 0}), HasSubstr("below 1"));
  const optimizers::Optimizer wrapped = LossScaleOptimizer(SGD(1.));
  EXPECT_THROW(LossScaleOptimizer(wrapped, {.initial_scale = 2}), InvalidArgumentError);
}

TEST(LossScaleOptimizer, WarnsOfALossThatIsNotScaled) {
  const Variable w(numbers({1}), {.name = "w"});
  const LossScaleOptimizer optimizer(SGD(1.));
  ::testing::internal::CaptureStderr();
  optimizer.apply_gradients({{numbers({1}), w}});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("get_scaled_loss"), HasSubstr("get_unscaled_gradients")));
}

TEST(LossScaleOptimizer, AllReplicasUpdateOrNone) {
  const auto strategy = distribute::mirrored(3);
  const auto scope = strategy.scope();
  const Variable w(numbers({9}), {.name = "w"});
  const LossScaleOptimizer optimizer(SGD(1.), {.initial_scale = 8});
  const auto run = [&](double of_last) {
    strategy.run([&](distribute::ReplicaContext& context) {
      const bool is_last = context.replica_id_in_sync_group() == 2;
      GradientTape tape;
      optimizer.minimize((w.value() * (is_last ? of_last : 1)).sum(), {w}, tape);
    });
  };
  run(kInfinity);
  EXPECT_EQ(w.value().item<double>(), 9);
  EXPECT_EQ(scale_of(optimizer), 4);
  EXPECT_EQ(optimizer.skipped_updates(), 1);
  run(1);
  EXPECT_EQ(w.value().item<double>(), 6);
  EXPECT_EQ(iterations_of(optimizer), 2);
  EXPECT_EQ(counter_of(optimizer), 1);
  const auto counters = optimizer.dynamic_counter().components();
  for (const Tensor& own : counters.values()) EXPECT_EQ(own.item<int64_t>(), 1);
}

TEST(LossScaleOptimizer, AllTasksUpdateOrNone) {
  distribute::run_all_tasks(2, 1, [](const distribute::Strategy& strategy, int task) {
    const auto scope = strategy.scope();
    const Variable w(numbers({9}), {.name = "w"});
    const LossScaleOptimizer optimizer(SGD(1.), {.initial_scale = 8});
    for (const double of_second : {kInfinity, 1.}) {
      strategy.run([&] {
        GradientTape tape;
        optimizer.minimize((w.value() * (task == 1 ? of_second : 1)).sum(), {w}, tape);
      });
    }
    EXPECT_EQ(w.value().item<double>(), 7);
    EXPECT_EQ(scale_of(optimizer), 4);
    EXPECT_EQ(counter_of(optimizer), 1);
    EXPECT_EQ(optimizer.skipped_updates(), 1);
  });
}

TEST(LossScaleOptimizer, AccumulatesScaledGradients) {
  const Variable w(numbers({0}), {.name = "w"});
  const LossScaleOptimizer optimizer(SGD({.learning_rate = 1, .gradient_accumulation_steps = 2}),
                                     {.initial_scale = 4});
  for (const double gradient : {1., 3.}) {
    GradientTape tape;
    optimizer.minimize((w.value() * gradient).sum(), {w}, tape);
  }
  EXPECT_EQ(w.value().item<double>(), -2);
  EXPECT_EQ(counter_of(optimizer), 1);
}

TEST(LossScaleOptimizer, IsInACheckpointUnderKerasNames) {
  const std::string path = ::testing::TempDir() + "loss_scale_ckpt";
  const Variable w(numbers({8}), {.name = "w"});
  const LossScaleOptimizer optimizer(optimizers::Adam({.learning_rate = 1}),
                                     {.initial_scale = 4, .dynamic_growth_steps = 2});
  for (int i = 0; i < 3; ++i) step(optimizer, w, 1);
  train::Checkpoint({{"optimizer", optimizer}, {"w", w}}).write(path);
  const train::CheckpointReader reader = train::load_checkpoint(path);
  for (const char* key :
       {"optimizer/loss_scale/current_loss_scale", "optimizer/loss_scale/good_steps",
        "optimizer/_iterations", "optimizer/_variables/1"}) {
    EXPECT_TRUE(reader.has_tensor(std::string(key) + "/.ATTRIBUTES/VARIABLE_VALUE")) << key;
  }

  const Variable other(numbers({0}), {.name = "w"});
  const LossScaleOptimizer again(optimizers::Adam({.learning_rate = 1}));
  train::Checkpoint({{"optimizer", again}, {"w", other}}).read(path);
  EXPECT_EQ(scale_of(again), 8);
  EXPECT_EQ(counter_of(again), 1);
  step(optimizer, w, 2);
  step(again, other, 2);
  EXPECT_EQ(other.value().item<double>(), w.value().item<double>());
  EXPECT_EQ(iterations_of(again), 4);

  // One without a scale goes on without it.
  const optimizers::Adam plain({.learning_rate = 1});
  train::Checkpoint({{"optimizer", plain}, {"w", other}}).read(path).expect_partial();
  EXPECT_EQ(iterations_of(plain), 3);
}

Sequential small_model() {
  const Sequential model(
      {layers::Dense(8, {.activation = "relu"}), layers::Dense(2, {.dtype = "float32"})});
  model.compile({.optimizer = optimizers::Adam({.learning_rate = 0.01}), .loss = "mse"});
  return model;
}

TEST(LossScaleOptimizer, IsWhatCompileMakesOfAnOptimizerForFloat16) {
  const Tensor x = at::randn({32, 6});
  const Tensor y = x.slice(1, 0, 2) * 2;
  set_global_policy("mixed_float16");
  const Sequential model = small_model();
  set_global_policy(std::nullopt);
  const auto optimizer = LossScaleOptimizer::from(model.optimizer());
  ASSERT_TRUE(optimizer);
  const History history = model.fit(x, y, {.batch_size = 8, .epochs = 6, .verbose = 0});
  EXPECT_LT(history["loss"].back(), history["loss"].front());
  EXPECT_EQ(iterations_of(*optimizer), 24);

  const std::string path = ::testing::TempDir() + "loss_scale_model";
  model.save(path);
  const ModelHandle copy = models::load_model(path);
  const auto read = LossScaleOptimizer::from(copy.optimizer());
  ASSERT_TRUE(read);
  EXPECT_EQ(scale_of(*read), scale_of(*optimizer));
  EXPECT_EQ(counter_of(*read), counter_of(*optimizer));
  EXPECT_EQ(read->inner_optimizer().name(), "Adam");
  EXPECT_EQ(copy.train_on_batch(x, y)["loss"], model.train_on_batch(x, y)["loss"]);

  EXPECT_FALSE(LossScaleOptimizer::from(small_model().optimizer())) << "in float32";
}

}  // namespace
}  // namespace cohort::keras::mixed_precision
