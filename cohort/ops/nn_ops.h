// What training loops in TensorFlow's names call beside layers: activations, losses from logits,
// and operations on the order and the gradient of tensors.
//
//   Tensor p = tf::nn::softmax(logits);
//   Tensor losses = tf::nn::sparse_softmax_cross_entropy_with_logits(labels, logits);   // [batch]
//   Tensor target = tf::stop_gradient(values);
//   auto [best, where] = tf::top_k(logits, 5);
//
// Gradients flow through all but stop_gradient. Errors of all: InvalidArgument (shapes, dtypes or
// axes that do not fit; an undefined tensor). Thread safety: any thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/ops/tensor_ops.h"

namespace cohort {

// The values, of which tapes know nothing before them.
COHORT_API Tensor stop_gradient(const Tensor& x);
// Running sums along `axis`. Shape: x's; dtype: x's.
COHORT_API Tensor cumsum(const Tensor& x, int64_t axis = 0);
// In ascending order along `axis`.
COHORT_API Tensor sort(const Tensor& x, int64_t axis = -1);
// The k largest of the last dimension, the largest first, and their int32 places.
COHORT_API std::pair<Tensor, Tensor> top_k(const Tensor& x, int64_t k = 1);
// The parts along `axis`, without that dimension.
COHORT_API std::vector<Tensor> unstack(const Tensor& x, int64_t axis = 0);
// Adds `value` before and after each dimension: {{1, 0}, {0, 2}}.
COHORT_API Tensor pad(const Tensor& x, const std::vector<std::pair<int64_t, int64_t>>& paddings,
                      double value = 0);

namespace nn {

COHORT_API Tensor relu(const Tensor& x);
COHORT_API Tensor leaky_relu(const Tensor& x, double alpha = 0.2);
COHORT_API Tensor softplus(const Tensor& x);
COHORT_API Tensor softmax(const Tensor& logits, int64_t axis = -1);
COHORT_API Tensor log_softmax(const Tensor& logits, int64_t axis = -1);
// Sets each element to 0 with probability `rate`, in [0, 1), and multiplies the others by
// 1 / (1 - rate). In a step every replica draws its own.
COHORT_API Tensor dropout(const Tensor& x, double rate);

// The losses of each element, class vector or row: means are nn::compute_average_loss's.
// Shapes: labels and logits alike -> the same.
COHORT_API Tensor sigmoid_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits);
// Shapes: labels (probabilities) and logits alike -> without `axis`.
COHORT_API Tensor softmax_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits,
                                                    int64_t axis = -1);
// Shapes: labels [..], integers; logits [.., classes] -> [..].
// Errors: also InvalidArgument (a label outside [0, classes)).
COHORT_API Tensor sparse_softmax_cross_entropy_with_logits(const Tensor& labels,
                                                           const Tensor& logits);
// sigmoid_cross_entropy_with_logits in which the term of a label's positive part counts
// `pos_weight` times: above 1 for fewer misses, below 1 for fewer false alarms.
// Shapes: labels and logits alike; pos_weight [] or what is broadcast to them -> the logits'.
COHORT_API Tensor weighted_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits,
                                                     const internal::Operand& pos_weight);

struct MomentsOptions {
  bool keepdims = false;  // keeps `axes` as dimensions of size 1
};
// The mean and the variance (not that of a sample: divided by the number of elements) over `axes`.
// float16 is summed as float32. Shapes: x [..], floating -> two of x's shape without `axes`.
COHORT_API std::pair<Tensor, Tensor> moments(const Tensor& x, at::IntArrayRef axes,
                                             MomentsOptions options = {});

struct L2NormalizeOptions {
  std::vector<int64_t> axis = {};  // over which squares are summed; empty: over all
  double epsilon = 1e-12;          // the least sum of squares by which is divided
};
// x / sqrt(max(sum of squares, epsilon)). Shape: [..], floating -> the same.
COHORT_API Tensor l2_normalize(const Tensor& x, const L2NormalizeOptions& options = {});
// Half of the sum of squares. Shape: [..] -> [].
COHORT_API Tensor l2_loss(const Tensor& x);

}  // namespace nn
}  // namespace cohort
