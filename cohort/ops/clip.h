// Keeping gradients from growing too large, and counting.
//
//   auto [clipped, norm] = tf::clip_by_global_norm(gradients, 1.0);
//   optimizer.apply_gradients(tf::zip(clipped, model.trainable_variables()));
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort {

// The square root of the sum of all squares, a scalar. Undefined tensors (gradients of variables
// that the loss does not use) are passed over; sparse ones count by their rows.
// Errors: InvalidArgument (no defined tensor, one of another kind than floating).
COHORT_API Tensor global_norm(const std::vector<Tensor>& tensors);

// Scales all tensors by clip_norm / max(norm, clip_norm), so that their global norm is at most
// `clip_norm`, and returns them with the norm before. Where that is infinite or NaN, all results
// are NaN. In a step each replica clips what it has: gradients before they are summed over
// replicas.
// Errors: as global_norm; InvalidArgument (clip_norm is not above 0).
COHORT_API std::pair<std::vector<Tensor>, Tensor> clip_by_global_norm(
    const std::vector<Tensor>& tensors, double clip_norm,
    const std::optional<Tensor>& use_norm = std::nullopt);

// The tensor, scaled to the norm `clip_norm` if its own is larger. Where that is infinite, finite
// elements become 0 and infinite ones NaN; where it is NaN, all are NaN.
// Errors: InvalidArgument (undefined, of another kind than floating; clip_norm is not above 0).
COHORT_API Tensor clip_by_norm(const Tensor& tensor, double clip_norm);

namespace math {

// How often each of 0, 1, ... occurs in `values`: [n] of int64, n at least `minlength`.
// Errors: InvalidArgument (no integers; a negative one).
COHORT_API Tensor bincount(const Tensor& values, int64_t minlength = 0);

// The number of examples of class i (rows) that were predicted as class j (columns): [n, n] of
// int32, as in TensorFlow. num_classes: by default one more than the greatest label.
// Shapes: [batch] of integers each. Errors: InvalidArgument (shapes differ; a label outside of
// [0, num_classes)).
COHORT_API Tensor confusion_matrix(const Tensor& labels, const Tensor& predictions,
                                   std::optional<int64_t> num_classes = std::nullopt);

}  // namespace math
}  // namespace cohort
