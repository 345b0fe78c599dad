// One step of training, in the ways that the step benchmark compares.
#pragma once

#include <cohort/cohort.h>

#include <memory>
#include <string>

#include "samples.h"

namespace bench {

class Training {
 public:
  virtual ~Training() = default;
  // Trains on one batch (they come around) and returns its loss.
  virtual double step(int64_t index) = 0;
};

// `model` on every replica of the strategy, `batch` samples each; "cnn" is guide 004's, of Keras
// layers as those of make_keras_model and make_example_model are, the others are TorchModels of
// make_classifier.
std::unique_ptr<Training> train_with_strategy(const cohort::distribute::Strategy& strategy,
                                              const Samples& samples, const std::string& model,
                                              int64_t batch);

// The same module in a loop of libtorch's own, without Cohort.
std::unique_ptr<Training> train_with_libtorch(const Samples& samples, const std::string& model,
                                              int64_t batch);

// How many numbers `model` learns: the sides of the benchmark must agree.
int64_t count_parameters(const std::string& model);

}  // namespace bench
