// Guide 001's toy data: three words an example, and whether "avenger" is among them; and the models
// that turn words into ids.
#pragma once

#include <cohort/cohort.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace examples {

extern const std::vector<std::string> feature_vocab;
extern const std::vector<std::string> label_vocab;

// {"features": strings [n, 3], "label": strings [n, 1]}. Its numbers are the same everywhere,
// unlike those of distributions.
cohort::Structure feature_and_label_gen(int64_t num_examples, std::mt19937& random);

// From words and answers to ids. A handle.
struct HeroStages {
  cohort::keras::layers::StringLookup feature_lookup_layer{{.vocabulary = feature_vocab}};
  cohort::keras::layers::StringLookup label_lookup_layer{
      {.vocabulary = label_vocab, .num_oov_indices = 0}};
  cohort::keras::SymbolicTensor raw_feature_input =
      cohort::keras::Input({3}, {.name = "feature", .dtype = cohort::string});
  cohort::keras::Functional feature_preprocess_stage{
      cohort::keras::SymbolicStructure::make_dict({{"features", raw_feature_input}}),
      feature_lookup_layer(raw_feature_input)};
  cohort::keras::SymbolicTensor raw_label_input =
      cohort::keras::Input({1}, {.name = "label", .dtype = cohort::string});
  cohort::keras::Functional label_preprocess_stage{
      cohort::keras::SymbolicStructure::make_dict({{"label", raw_label_input}}),
      label_lookup_layer(raw_label_input)};

  // A pair of {"features": ids} and label ids, of one example or of a batch.
  cohort::Structure operator()(const cohort::Structure& x) const {
    return cohort::tuple(cohort::dict({{"features", feature_preprocess_stage(x["features"])}}),
                         label_preprocess_stage(x["label"]));
  }
};

// The mean of three embeddings of `output_dim` numbers, and from it the probability of "no".
cohort::keras::Functional create_hero_model(int64_t vocabulary_size, int64_t output_dim);

}  // namespace examples
