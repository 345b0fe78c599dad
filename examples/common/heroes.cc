#include "common/heroes.h"

#include <algorithm>

namespace examples {

namespace tf = cohort;

const std::vector<std::string> feature_vocab = {"avenger",   "ironman",  "batman",      "hulk",
                                                "spiderman", "kingkong", "wonder_woman"};
const std::vector<std::string> label_vocab = {"yes", "no"};

tf::Structure feature_and_label_gen(int64_t num_examples, std::mt19937& random) {
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

tf::keras::Functional create_hero_model(int64_t vocabulary_size, int64_t output_dim) {
  namespace layers = tf::keras::layers;
  const auto model_input = tf::keras::Input({3}, {.name = "model_input", .dtype = tf::int64});
  const auto emb_output =
      layers::GlobalAveragePooling1D()(layers::Embedding(vocabulary_size, output_dim)(model_input));
  return tf::keras::Functional(tf::keras::SymbolicStructure::make_dict({{"features", model_input}}),
                               layers::Dense(1, {.activation = "sigmoid"})(emb_output));
}

}  // namespace examples
