#include "model.h"

#include <string>
#include <vector>

namespace tabular {
namespace {

namespace tf = cohort;
namespace layers = tf::keras::layers;
using tf::keras::SymbolicStructure;
using tf::keras::SymbolicTensor;

constexpr int64_t kMostCategories = 1'000;
constexpr int64_t kMostWords = 2'000;
constexpr int64_t kEmbedding = 8;

tf::data::Dataset column(const tf::data::Dataset& features, const std::string& name) {
  return features.map([name](const tf::Structure& batch) { return batch[0][name]; });
}

// The parts of the model under construction.
struct Parts {
  SymbolicStructure::Dict inputs;
  std::vector<SymbolicTensor> wide, deep;
};

void add_numbers(const tf::data::Dataset& features, int64_t count, Parts& parts) {
  if (count == 0) return;
  const SymbolicTensor numbers = tf::keras::Input({count}, {.name = "numbers"});
  const layers::Normalization normalization;
  normalization.adapt(column(features, "numbers"));
  parts.inputs.emplace_back("numbers", numbers);
  parts.deep.push_back(normalization(numbers));
}

void add_category(const tf::data::Dataset& features, const std::string& name, Parts& parts) {
  const SymbolicTensor words = tf::keras::Input({1}, {.name = name, .dtype = tf::string});
  const layers::StringLookup ids({.max_tokens = kMostCategories});
  ids.adapt(column(features, name));
  const layers::StringLookup one_hot(
      {.vocabulary = ids.get_vocabulary(), .output_mode = "one_hot"});
  parts.inputs.emplace_back(name, words);
  parts.wide.push_back(one_hot(words));
  const layers::Embedding embedding(ids.vocabulary_size(), kEmbedding);
  parts.deep.push_back(layers::Flatten()(embedding(ids(words))));
}

void add_text(const tf::data::Dataset& features, const std::string& name, Parts& parts) {
  const SymbolicTensor text = tf::keras::Input({1}, {.name = name, .dtype = tf::string});
  const layers::TextVectorization words({.max_tokens = kMostWords, .output_mode = "multi_hot"});
  words.adapt(column(features, name));
  parts.inputs.emplace_back(name, text);
  parts.wide.push_back(words(text));
}

// The only part, or what `merge` makes of several.
SymbolicTensor merged(const layers::LayerHandle& merge, const std::vector<SymbolicTensor>& parts) {
  if (parts.size() == 1) return parts.front();
  return merge(SymbolicStructure::make_tuple({parts.begin(), parts.end()}));
}

}  // namespace

tf::keras::Functional wide_and_deep(const tf::data::Dataset& features, const Columns& columns,
                                    int64_t num_classes) {
  Parts parts;
  add_numbers(features, std::ssize(columns.numbers), parts);
  for (const std::string& name : columns.categories) add_category(features, name, parts);
  for (const std::string& name : columns.texts) add_text(features, name, parts);

  std::vector<SymbolicTensor> logits;
  if (!parts.wide.empty()) {
    logits.push_back(
        layers::Dense(num_classes, {.name = "wide"})(merged(layers::Concatenate(), parts.wide)));
  }
  if (!parts.deep.empty()) {
    SymbolicTensor hidden = merged(layers::Concatenate(), parts.deep);
    for (const int64_t units : {64, 32}) {
      hidden = layers::Dense(units, {.activation = "relu"})(hidden);
    }
    logits.push_back(layers::Dense(num_classes, {.name = "deep"})(hidden));
  }
  const SymbolicTensor sum = merged(layers::Add(), logits);
  return {SymbolicStructure::make_dict(std::move(parts.inputs)), sum};
}

}  // namespace tabular
