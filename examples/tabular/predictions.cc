#include "predictions.h"

#include <iostream>
#include <string>
#include <vector>

namespace tabular {

namespace tf = cohort;

void print_predictions(const tf::keras::ModelHandle& model, const tf::data::Dataset& features,
                       const tf::transform::TFTransformOutput& output) {
  const std::vector<std::string> classes = output.vocabulary_by_name("label").to_vector();
  const tf::Tensor logits = model.predict(features, {.verbose = 0}).tensor();
  const auto [probabilities, indices] = logits.softmax(1).max(1);
  for (int64_t row = 0; row < indices.size(0); ++row) {
    std::cout << classes[indices[row].item<int64_t>()] << ' ' << probabilities[row].item<double>()
              << '\n';
  }
}

}  // namespace tabular
