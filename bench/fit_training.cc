#include "fit_training.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/trainer.h"
#include "epoch_clock.h"
#include "every_other_epoch.h"
#include "timing.h"

namespace bench {
namespace {

namespace tf = cohort;
namespace callbacks = tf::keras::callbacks;

// All samples, again and again.
tf::data::Dataset batches(const Samples& samples, int64_t batch) {
  std::vector<tf::Tensor> inputs, labels;
  for (int64_t i = 0; i < Samples::kBatches; ++i) {
    auto [x, y] = samples.batch(i, batch);
    inputs.push_back(std::move(x));
    labels.push_back(std::move(y));
  }
  return tf::data::Dataset::from_tensor_slices(tf::tuple(at::cat(inputs), at::cat(labels)))
      .shuffle(Samples::kBatches * batch)
      .batch(batch)
      .repeat();
}

tf::keras::Sequential make_model(const std::string& name) {
  if (name == "cnn") return examples::create_model();
  namespace layers = tf::keras::layers;
  if (name == "wide") {
    return tf::keras::Sequential({layers::Dense(2048, {.activation = "relu"}),
                                  layers::Dense(2048, {.activation = "relu"}), layers::Dense(10)});
  }
  throw std::invalid_argument("no model is called '" + name + "'");
}

// Makes the variables. All trainings begin with the same ones: on how many pixels relu cuts depends
// how long a backward pass takes.
void build(const tf::keras::Sequential& model, const Samples& samples) {
  tf::random::set_seed(1);
  model(samples.batch(0, 1).first);
}

class LoopTraining : public EpochTraining {
 public:
  LoopTraining(const tf::distribute::Strategy& strategy, const Samples& samples, int64_t batch)
      : trainer_(strategy, batch),
        dataset_(strategy.experimental_distribute_dataset(batches(samples, batch))),
        iterator_(dataset_.iterator()) {
    const auto scope = strategy.scope();
    build(trainer_.model(), samples);
  }

  double epoch(int64_t steps) override {
    std::chrono::steady_clock::time_point start;
    for (int64_t epoch = 0; epoch < EpochClock::kEpochs; ++epoch) {
      if (epoch == 1) start = std::chrono::steady_clock::now();
      trainer_.train_accuracy.reset_states();
      for (int64_t i = 0; i < steps; ++i) trainer_.distributed_train_step(iterator_.get_next());
      trainer_.train_accuracy.result();
    }
    return seconds_since(start) / (EpochClock::kEpochs - 1);
  }

 private:
  examples::Trainer trainer_;
  tf::distribute::DistributedDataset dataset_;
  tf::distribute::DistributedIterator iterator_;
};

class FitTraining : public EpochTraining {
 public:
  FitTraining(const tf::distribute::Strategy& strategy, const Samples& samples,
              const TrainingPlan& plan)
      : FitTraining(strategy, samples, plan, strategy.scope()) {}

  double epoch(int64_t steps) override { return train(steps, EpochClock::kEpochs, {}).epoch(); }

  // The clock is the last of the callbacks.
  EpochClock train(int64_t steps, int64_t epochs, std::vector<callbacks::CallbackArgument> list) {
    EpochClock clock;
    list.emplace_back(clock);
    model_.fit(
        data_,
        {.epochs = epochs, .verbose = 0, .callbacks = std::move(list), .steps_per_epoch = steps});
    return clock;
  }

 private:
  FitTraining(const tf::distribute::Strategy&, const Samples& samples, const TrainingPlan& plan,
              const tf::distribute::Scope&)
      : model_(make_model(plan.model)), data_(batches(samples, plan.batch)) {
    model_.compile({.optimizer = tf::keras::optimizers::Adam({.learning_rate = 0.001}),
                    .loss = tf::keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                    .metrics = {"accuracy"}});
    build(model_, samples);
  }

  tf::keras::Sequential model_;
  tf::data::Dataset data_;
};

std::shared_ptr<EveryOtherEpoch> make_callback(const std::string& name,
                                               const std::string& directory) {
  if (name == "checkpoint") {
    return std::make_shared<EveryOtherEpoch>(
        std::make_shared<callbacks::ModelCheckpoint>(directory + "/{epoch}"),
        /*ends_at_the_beginning=*/true);
  }
  if (name == "tensorboard") {
    return std::make_shared<EveryOtherEpoch>(
        std::make_shared<callbacks::TensorBoard>(
            callbacks::TensorBoardOptions{.log_dir = directory, .histogram_freq = 2}),
        /*ends_at_the_beginning=*/false);
  }
  throw std::invalid_argument("no callback is called '" + name + "'");
}

// How many steps take so many seconds; one at least.
int64_t steps_within(double seconds, EpochTraining& training) {
  constexpr double kTrial = 0.2;
  const double step = time_runs(kTrial, 1, [&](int64_t steps) { return training.epoch(steps); });
  return std::max<int64_t>(1, static_cast<int64_t>(seconds / step));
}

}  // namespace

std::string samples_of(const std::string& model) { return model == "wide" ? "mlp" : model; }

TimedPairs time_callback(const std::string& callback, const tf::distribute::Strategy& strategy,
                         const Samples& samples, const TrainingPlan& plan, double seconds,
                         int64_t pairs) {
  FitTraining training(strategy, samples, plan);
  const int64_t steps = steps_within(seconds, training);
  const auto every_other = make_callback(callback, plan.directory);
  const EpochClock clock = training.train(steps, epochs_of_pairs(pairs), {every_other});
  const auto rate = [&](int64_t epoch) {
    return static_cast<double>(plan.batch * steps) / clock.epoch(static_cast<size_t>(epoch));
  };
  TimedPairs result{.pairs = {}, .stall = every_other->longest_end()};
  for (int64_t pair = 0; pair < pairs; ++pair) {
    result.pairs.push_back({.with = rate(epoch_with(pair)), .without = rate(epoch_without(pair))});
  }
  return result;
}

TimedPairs time_fit_and_loop(const tf::distribute::Strategy& strategy, const Samples& samples,
                             const TrainingPlan& plan, double seconds, int64_t pairs) {
  constexpr int kTurns = 4;  // of each: fit, loop, loop, fit, and again
  TimedPairs result;
  for (int64_t pair = 0; pair < pairs; ++pair) {
    FitTraining fit(strategy, samples, plan);
    LoopTraining loop(strategy, samples, plan.batch);
    const int64_t steps = steps_within(seconds / (kTurns * (EpochClock::kEpochs - 1)), loop);
    fit.epoch(steps);
    double fit_seconds = 0, loop_seconds = 0;
    for (int turn = 0; turn < kTurns; turn += 2) {
      fit_seconds += fit.epoch(steps);
      loop_seconds += loop.epoch(steps);
      loop_seconds += loop.epoch(steps);
      fit_seconds += fit.epoch(steps);
    }
    const auto samples_of_turns = static_cast<double>(kTurns * plan.batch * steps);
    result.pairs.push_back(
        {.with = samples_of_turns / fit_seconds, .without = samples_of_turns / loop_seconds});
  }
  return result;
}

std::unique_ptr<EpochTraining> make_fit(const tf::distribute::Strategy& strategy,
                                        const Samples& samples, const TrainingPlan& plan) {
  return std::make_unique<FitTraining>(strategy, samples, plan);
}

}  // namespace bench
