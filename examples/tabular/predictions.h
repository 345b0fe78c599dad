// What a model says of rows.
#pragma once

#include <cohort/cohort.h>

namespace tabular {

// Prints a line a row: the most likely class and its probability.
void print_predictions(const cohort::keras::ModelHandle& model,
                       const cohort::data::Dataset& features,
                       const cohort::transform::TFTransformOutput& output);

}  // namespace tabular
