#include "training.h"

#include <cstdio>
#include <optional>
#include <random>

namespace parameter_server {

namespace tf = cohort;
using tf::Structure;
using tf::Tensor;
using tf::data::Dataset;
using tf::distribute::DistributedIterator;
using tf::distribute::InputContext;
using tf::distribute::coordinator::ClusterCoordinator;

namespace {

// Whether a word list has "avenger": 1 for "no".
Tensor as_answers(const Tensor& predictions) {
  return tf::cast(tf::greater(predictions, 0.5), tf::int64);
}

void print(const char* format, auto... values) {
  std::printf(format, values...);
  std::fflush(stdout);
}

}  // namespace

// Members are made in their order: the model and its companions under the strategy's scope.
Program::Program(const tf::distribute::ParameterServerStrategy& strategy, const Options& options)
    : strategy_(strategy),
      options_(options),
      scope_(strategy_.scope()),
      model_(examples::create_hero_model(stages_.feature_lookup_layer.vocabulary_size(),
                                         kEmbeddingSize)),
      optimizer_({.learning_rate = 0.1}),
      // Every worker reads all of the examples, in an order of its own.
      dataset_fn_(strategy_.function(
          "dataset",
          [this](const InputContext& context) {
            std::mt19937 random(static_cast<uint32_t>(options_.seed));
            return Dataset::from_tensor_slices(examples::feature_and_label_gen(200, random))
                .map(stages_)
                .shuffle(200,
                         {.seed = options_.seed + static_cast<uint64_t>(context.input_pipeline_id)})
                .batch(32)
                .repeat();
          })),
      step_fn_(strategy_.function(
          "step",
          [this](DistributedIterator& iterator) {
            const auto replica_fn = [this](const Structure& batch_data, const Tensor& labels) {
              tf::GradientTape tape;
              const Tensor pred = predict(batch_data, true);
              const tf::keras::losses::BinaryCrossentropy per_example(
                  {.reduction = tf::keras::losses::Reduction::NONE});
              const Tensor loss = tf::nn::compute_average_loss(per_example(labels, pred));
              const auto variables = model_.trainable_variables();
              optimizer_.apply_gradients(tf::zip(tape.gradient(loss, variables), variables));
              accuracy_.update_state(labels, as_answers(pred));
              return loss;
            };
            return strategy_.reduce(tf::distribute::ReduceOp::SUM,
                                    strategy_.run(replica_fn, iterator.get_next()));
          })),
      eval_dataset_fn_(strategy_.function(
          "eval_dataset",
          [this] {
            std::mt19937 random(static_cast<uint32_t>(options_.seed) + 1);
            return Dataset::from_tensor_slices(examples::feature_and_label_gen(16, random))
                .map(stages_)
                .shuffle(16, {.seed = options_.seed})
                .repeat()
                .batch(8);
          })),
      eval_step_(strategy_.function("eval_step", [this](DistributedIterator& iterator) {
        strategy_.run(
            [this](const Structure& batch_data, const Tensor& labels) {
              eval_accuracy_.update_state(labels, as_answers(predict(batch_data, false)));
            },
            iterator.get_next());
      })) {
  optimizer_.build(model_.trainable_variables());
  scope_.close();
}

Tensor Program::predict(const Structure& batch_data, bool training) const {
  return model_(batch_data, {.training = training}).tensor();
}

void Program::train() {
  // Half a megabyte: the partitioner divides the embeddings, and leaves the dense layer whole.
  for (const tf::Variable& shard : model_.trainable_variables()[0].shards()) {
    const auto shape = shard.shape();
    print("%s (%d, %d) is on %s\n", shard.name().c_str(), static_cast<int>(shape[0]),
          static_cast<int>(shape[1]), shard.device().c_str());
  }
  const ClusterCoordinator coordinator(strategy_, {.window = options_.window});
  const auto iterator = coordinator.create_per_worker_dataset(dataset_fn_).iterator();

  std::optional<tf::train::CheckpointManager> checkpoints;
  if (!options_.checkpoints.empty()) {
    tf::train::Checkpoint checkpoint({{"model", model_}, {"optimizer", optimizer_}});
    checkpoints.emplace(checkpoint, options_.checkpoints,
                        tf::train::CheckpointManagerOptions{.max_to_keep = 3});
    if (const auto latest = checkpoints->latest_checkpoint()) {
      checkpoint.restore(*latest).assert_existing_objects_matched();
      print("Restored %s\n", latest->c_str());
    }
  }

  const auto steps = optimizer_.iterations().value().item<int64_t>();
  for (auto epoch = static_cast<int>(steps / kStepsPerEpoch); epoch < options_.epochs; ++epoch) {
    accuracy_.reset_state();
    for (int step = 0; step < kStepsPerEpoch; ++step) coordinator.schedule(step_fn_, iterator);
    coordinator.join();  // at epoch boundaries
    print("Finished epoch %d, accuracy is %f.\n", epoch, accuracy_.result().item<double>());
    if (checkpoints) checkpoints->save({.checkpoint_number = epoch + 1});
  }
  const auto loss = coordinator.schedule(step_fn_, iterator);
  print("Final loss is %f\n", loss.fetch().tensor().item<double>());
  print("Mean staleness is %.2f\n", coordinator.mean_staleness());

  evaluate_inline();
  evaluate_on_workers(coordinator);
}

// On the coordinator, with the variables of the ps tasks.
void Program::evaluate_inline() const {
  std::mt19937 random(static_cast<uint32_t>(options_.seed) + 2);
  const tf::keras::metrics::Accuracy accuracy;
  const auto dataset = Dataset::from_tensor_slices(examples::feature_and_label_gen(16, random))
                           .map(stages_)
                           .batch(8);
  for (const Structure& batch : dataset) {
    accuracy.update_state(batch[1].tensor(), as_answers(predict(batch[0], false)));
  }
  print("Evaluation accuracy: %f\n", accuracy.result().item<double>());
}

void Program::evaluate_on_workers(const ClusterCoordinator& coordinator) {
  constexpr int kEvalStepsPerEpoch = 2;
  const auto iterator = coordinator.create_per_worker_dataset(eval_dataset_fn_).iterator();
  for (int step = 0; step < kEvalStepsPerEpoch; ++step) coordinator.schedule(eval_step_, iterator);
  coordinator.join();
  print("Evaluation accuracy: %f\n", eval_accuracy_.result().item<double>());
}

}  // namespace parameter_server
