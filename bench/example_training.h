// Trains the models of examples/models on the samples of the step benchmark.
#pragma once

#include <cohort/cohort.h>

#include <memory>
#include <optional>
#include <string>

#include "training.h"

namespace bench {

// Trainings of examples/models, in sizes at which a step is worth its measure; nothing for other
// names.
std::optional<cohort::keras::ModelHandle> make_example_model(const std::string& name);

// `model` on every replica of the strategy, `batch` samples each.
std::unique_ptr<Training> train_example(const cohort::distribute::Strategy& strategy,
                                        const Samples& samples, const std::string& model,
                                        int64_t batch);

}  // namespace bench
