// A wide-and-deep model (Cheng et al., 2016): a linear model of categories, words, buckets and
// crosses beside a network of numbers and embeddings.
#pragma once

#include <cohort/cohort.h>

namespace tabular {

// Its inputs are the features (input.h), its outputs logits [n, classes].
cohort::keras::Functional wide_and_deep(const cohort::transform::TFTransformOutput& output);

}  // namespace tabular
