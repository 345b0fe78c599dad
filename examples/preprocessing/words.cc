#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "sections.h"

namespace preprocessing {

namespace tf = cohort;
using tf::Structure;
using tf::Tensor;
using tf::data::Dataset;
namespace layers = tf::keras::layers;

namespace {

const std::vector<std::string> feature_vocab = {"avenger",   "ironman",  "batman",      "hulk",
                                                "spiderman", "kingkong", "wonder_woman"};
const std::vector<std::string> label_vocab = {"yes", "no"};

// Three different words an example; the answer is whether "avenger" is among them.
Structure feature_and_label_gen(int64_t num_examples, std::mt19937& random) {
  std::vector<std::string> features;
  std::vector<std::string> labels;
  std::vector<std::string> words = feature_vocab;
  for (int64_t i = 0; i < num_examples; ++i) {
    for (size_t k = 0; k < 3; ++k) {
      std::swap(words[k], words[k + random() % (words.size() - k)]);
      features.push_back(words[k]);
    }
    labels.push_back(std::count(words.begin(), words.begin() + 3, "avenger") == 1 ? "yes" : "no");
  }
  return tf::dict({{"features", tf::StringTensor(features, {num_examples, 3})},
                   {"label", tf::StringTensor(labels, {num_examples, 1})}});
}

// From words and answers to ids.
struct Stages {
  layers::StringLookup feature_lookup_layer{{.vocabulary = feature_vocab}};
  layers::StringLookup label_lookup_layer{{.vocabulary = label_vocab, .num_oov_indices = 0}};
  tf::keras::SymbolicTensor raw_feature_input =
      tf::keras::Input({3}, {.name = "feature", .dtype = tf::string});
  tf::keras::Functional feature_preprocess_stage{
      tf::keras::SymbolicStructure::make_dict({{"features", raw_feature_input}}),
      feature_lookup_layer(raw_feature_input)};
  tf::keras::SymbolicTensor raw_label_input =
      tf::keras::Input({1}, {.name = "label", .dtype = tf::string});
  tf::keras::Functional label_preprocess_stage{
      tf::keras::SymbolicStructure::make_dict({{"label", raw_label_input}}),
      label_lookup_layer(raw_label_input)};

  Dataset preprocess(const Structure& examples, int64_t batch_size) const {
    return Dataset::from_tensor_slices(examples)
        .batch(batch_size)
        .map([stages = *this](const Structure& x) {
          return tf::tuple(tf::dict({{"features", stages.feature_preprocess_stage(x["features"])}}),
                           stages.label_preprocess_stage(x["label"]));
        });
  }
};

tf::keras::Functional create_model(int64_t vocabulary_size) {
  const auto model_input = tf::keras::Input({3}, {.name = "model_input", .dtype = tf::int64});
  const auto emb_output =
      layers::GlobalAveragePooling1D()(layers::Embedding(vocabulary_size, 16)(model_input));
  return tf::keras::Functional(tf::keras::SymbolicStructure::make_dict({{"features", model_input}}),
                               layers::Dense(1, {.activation = "sigmoid"})(emb_output));
}

}  // namespace

void words_to_predictions() {
  tf::random::set_seed(1);
  std::mt19937 random(1);  // its values are the same everywhere, unlike those of distributions
  const tf::distribute::MirroredStrategy strategy;
  auto scope = strategy.scope();
  const Stages stages;
  const auto model = create_model(stages.feature_lookup_layer.vocabulary_size());
  const tf::keras::optimizers::RMSprop optimizer({.learning_rate = 0.1});
  const tf::keras::losses::BinaryCrossentropy loss_object(
      {.reduction = tf::keras::losses::Reduction::NONE});
  const tf::keras::metrics::BinaryAccuracy accuracy;
  scope.close();

  const Structure two = feature_and_label_gen(2, random);
  std::cout << "\nWords and answers " << two << "\nas ids "
            << stages.preprocess(two, 2).iterator().get_next() << '\n';

  const int64_t global_batch_size = 32;
  const auto train_dataset = strategy.experimental_distribute_dataset(
      stages.preprocess(feature_and_label_gen(192, random), global_batch_size));
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
      stages.preprocess(feature_and_label_gen(16, random), 8));
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
