#include "fit_training.h"

#include <ATen/ops/cat.h>

#include <stdexcept>
#include <vector>

#include "common/trainer.h"
#include "epoch_clock.h"
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

class LoopTraining : public EpochTraining {
 public:
  LoopTraining(const tf::distribute::Strategy& strategy, const Samples& samples, int64_t batch)
      : trainer_(strategy, batch),
        dataset_(strategy.experimental_distribute_dataset(batches(samples, batch))),
        iterator_(dataset_.iterator()) {}

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

// Says how long each of its saves held training up.
class TimedCheckpoint : public callbacks::ModelCheckpoint {
 public:
  using ModelCheckpoint::ModelCheckpoint;

  void on_epoch_end(int64_t epoch, tf::keras::Logs& logs) override {
    const auto start = std::chrono::steady_clock::now();
    ModelCheckpoint::on_epoch_end(epoch, logs);
    if (epoch > 0) longest = std::max(longest, seconds_since(start));
  }

  double longest = 0;
};

class FitTraining : public EpochTraining {
 public:
  FitTraining(const tf::distribute::Strategy& strategy, const Samples& samples,
              const TrainingPlan& plan)
      : FitTraining(strategy, samples, plan, strategy.scope()) {}

  double epoch(int64_t steps) override {
    std::vector<callbacks::CallbackArgument> list;
    const auto checkpoint = std::make_shared<TimedCheckpoint>(
        callbacks::ModelCheckpointOptions{.filepath = plan_.directory + "/{epoch}"});
    if (plan_.kind == "checkpoint") list.emplace_back(checkpoint);
    if (plan_.kind == "tensorboard") {
      list.emplace_back(callbacks::TensorBoard({.log_dir = plan_.directory, .histogram_freq = 2}));
    }
    EpochClock clock;
    list.emplace_back(clock);
    model_.fit(data_, {.epochs = EpochClock::kEpochs,
                       .verbose = 0,
                       .callbacks = std::move(list),
                       .steps_per_epoch = steps});
    stall_ = checkpoint->longest;
    return clock.epoch();
  }
  double stall() const override { return stall_; }

 private:
  FitTraining(const tf::distribute::Strategy&, const Samples& samples, const TrainingPlan& plan,
              const tf::distribute::Scope&)
      : plan_(plan), model_(make_model(plan.model)), data_(batches(samples, plan.batch)) {
    model_.compile({.optimizer = tf::keras::optimizers::Adam({.learning_rate = 0.001}),
                    .loss = tf::keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                    .metrics = {"accuracy"}});
  }

  TrainingPlan plan_;
  tf::keras::Sequential model_;
  tf::data::Dataset data_;
  double stall_ = 0;
};

}  // namespace

std::string samples_of(const std::string& model) { return model == "wide" ? "mlp" : model; }

std::unique_ptr<EpochTraining> make_training(const tf::distribute::Strategy& strategy,
                                             const Samples& samples, const TrainingPlan& plan) {
  if (plan.kind == "loop") return std::make_unique<LoopTraining>(strategy, samples, plan.batch);
  for (const char* kind : {"fit", "checkpoint", "tensorboard"}) {
    if (plan.kind == kind) return std::make_unique<FitTraining>(strategy, samples, plan);
  }
  throw std::invalid_argument("there is no training '" + plan.kind + "'");
}

}  // namespace bench
