#include "model.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tabular {
namespace {

namespace tf = cohort;
namespace layers = tf::keras::layers;
using tf::keras::Input;
using tf::keras::SymbolicStructure;
using tf::keras::SymbolicTensor;

constexpr int64_t kEmbedding = 8;

// The parts of the model under construction.
struct Parts {
  SymbolicStructure::Dict inputs;
  std::vector<SymbolicTensor> wide, deep;
};

// Numbers are floats, categories integers, and words a vector of a row for all words there are.
void add_feature(const std::string& name, const tf::io::ExampleFeature& feature, int64_t buckets,
                 Parts& parts) {
  const auto* const fixed = std::get_if<tf::io::FixedLenFeature>(&feature);
  if (fixed == nullptr) {
    const SymbolicTensor words = Input({buckets}, {.name = name});
    parts.inputs.emplace_back(name, words);
    parts.wide.push_back(words);
  } else if (fixed->dtype == tf::int64) {
    const SymbolicTensor ids = Input({}, {.name = name, .dtype = tf::int64});
    parts.inputs.emplace_back(name, ids);
    parts.wide.push_back(layers::CategoryEncoding(buckets, {.output_mode = "one_hot"})(ids));
    parts.deep.push_back(layers::Embedding(buckets, kEmbedding)(ids));
  } else {
    const SymbolicTensor numbers = Input(fixed->shape, {.name = name});
    parts.inputs.emplace_back(name, numbers);
    parts.deep.push_back(numbers);
  }
}

// The only part, or what `merge` makes of several.
SymbolicTensor merged(const layers::LayerHandle& merge, const std::vector<SymbolicTensor>& parts) {
  if (parts.size() == 1) return parts.front();
  return merge(SymbolicStructure::make_tuple({parts.begin(), parts.end()}));
}

}  // namespace

tf::keras::Functional wide_and_deep(const tf::transform::TFTransformOutput& output) {
  Parts parts;
  for (const auto& [name, feature] : output.transformed_feature_spec()) {
    if (name == "label") continue;
    const bool is_number = name == "all numbers";
    add_feature(name, feature, is_number ? 0 : output.num_buckets_for_transformed_feature(name),
                parts);
  }
  const int64_t num_classes = output.vocabulary_size_by_name("label");
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
