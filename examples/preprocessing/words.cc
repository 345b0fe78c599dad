#include <iostream>
#include <random>

#include "common/heroes.h"
#include "sections.h"

namespace preprocessing {

namespace tf = cohort;
using tf::Structure;
using tf::Tensor;
using tf::data::Dataset;

namespace {

using examples::feature_and_label_gen;

Dataset preprocess(const examples::HeroStages& stages, const Structure& rows, int64_t batch_size) {
  return Dataset::from_tensor_slices(rows).batch(batch_size).map(stages);
}

}  // namespace

void words_to_predictions() {
  tf::random::set_seed(1);
  std::mt19937 random(1);  // its values are the same everywhere, unlike those of distributions
  const tf::distribute::MirroredStrategy strategy;
  auto scope = strategy.scope();
  const examples::HeroStages stages;
  const auto model = examples::create_hero_model(stages.feature_lookup_layer.vocabulary_size(), 16);
  const tf::keras::optimizers::RMSprop optimizer({.learning_rate = 0.1});
  const tf::keras::losses::BinaryCrossentropy loss_object(
      {.reduction = tf::keras::losses::Reduction::NONE});
  const tf::keras::metrics::BinaryAccuracy accuracy;
  scope.close();

  const Structure two = feature_and_label_gen(2, random);
  std::cout << "\nWords and answers " << two << "\nas ids "
            << preprocess(stages, two, 2).iterator().get_next() << '\n';

  const int64_t global_batch_size = 32;
  const auto train_dataset = strategy.experimental_distribute_dataset(
      preprocess(stages, feature_and_label_gen(192, random), global_batch_size));
  const auto train_step = [&](const Structure& features, const Tensor& labels) {
    tf::GradientTape tape;
    const Tensor predictions = model(features, {.training = true}).tensor();
    const Tensor loss = tf::nn::compute_average_loss(loss_object(labels, predictions),
                                                     {.global_batch_size = global_batch_size});
    const auto variables = model.trainable_variables();
    optimizer.apply_gradients(tf::zip(tape.gradient(loss, variables), variables));
  };
  for (int epoch = 0; epoch < 10; ++epoch) {
    for (const auto& batch : train_dataset) strategy.run(train_step, batch);
  }

  const auto eval_dataset = strategy.experimental_distribute_dataset(
      preprocess(stages, feature_and_label_gen(16, random), 8));
  for (const auto& batch : eval_dataset) {
    strategy.run(
        [&](const Structure& features, const Tensor& labels) {
          accuracy.update_state(labels, model(features).tensor());
        },
        batch);
  }
  std::cout << "Evaluation accuracy: " << accuracy.result().item<double>() << '\n';
}

}  // namespace preprocessing
