#include <iostream>

#include "sections.h"

namespace preprocessing {

namespace tf = cohort;
using tf::StringTensor;
using tf::Structure;

// In the model: it takes strings, wherever it is used later. In the dataset: lookups run ahead of
// the step, on the CPU.
void in_the_model() {
  namespace layers = tf::keras::layers;
  const tf::distribute::MirroredStrategy strategy;
  auto scope = strategy.scope();
  const layers::StringLookup lookup(
      {.vocabulary = {"a", "b", "c"}, .output_mode = "multi_hot", .name = "lookup"});
  const layers::Dense dense(1, {.kernel_initializer = "ones"});

  const auto words = tf::keras::Input({2}, {.name = "words", .dtype = tf::string});
  const tf::keras::Functional of_words(words, dense(lookup(words)));
  const auto features = tf::keras::Input({lookup.vocabulary_size()});
  const tf::keras::Functional of_features(features, dense(features));
  scope.close();

  const auto dataset = tf::data::Dataset::from_tensor_slices(
                           StringTensor({"a", "b", "c", "c", "x", "y", "b", "x"}, {4, 2}))
                           .batch(4);
  std::cout << "\nIn the model, one row a replica:\n";
  for (const auto& batch : strategy.experimental_distribute_dataset(dataset)) {
    std::cout << strategy.run([&](const Structure& piece) { return of_words(piece); }, batch)
              << '\n';
  }
  std::cout << "The same, looked up in the dataset:\n";
  for (const auto& batch : strategy.experimental_distribute_dataset(dataset.map(lookup))) {
    std::cout << strategy.run([&](const Structure& piece) { return of_features(piece); }, batch)
              << '\n';
  }
}

}  // namespace preprocessing
