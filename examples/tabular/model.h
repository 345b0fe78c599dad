// A wide-and-deep model (Cheng et al., 2016): a linear model of categories and words beside a
// network of numbers and embeddings.
#pragma once

#include <cohort/cohort.h>

#include "columns.h"

namespace tabular {

// Learns vocabularies, means and variances from `features` (input.h), which it reads once for each
// column. The model's inputs are the features, its outputs logits [n, num_classes].
cohort::keras::Functional wide_and_deep(const cohort::data::Dataset& features,
                                        const Columns& columns, int64_t num_classes);

}  // namespace tabular
