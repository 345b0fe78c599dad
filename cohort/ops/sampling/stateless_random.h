// Random tensors that follow from a seed of two numbers and from nothing else: equal seeds give
// equal tensors, on every thread and replica and in every run. Numbers of the first group equal
// those of TensorFlow's functions of the same names (algorithm Philox, that of CPUs and GPUs).
//
//   Tensor noise = tf::random::stateless_normal({2, 3}, {1, 2});
//   dataset.enumerate().map([](int64_t i, const Tensor& image) {    // the same noise in each epoch
//     return image + tf::random::stateless_normal({28, 28}, tf::random::fold_in({7, 0}, i));
//   });
#pragma once

#include <cstdint>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/ops/random_options.h"
#include "cohort/ops/tensor_ops.h"

namespace cohort::random {

class COHORT_API StatelessSeed {
 public:
  StatelessSeed(int64_t first, int64_t second) : first_(first), second_(second) {}
  // Shape: [2]. Errors: InvalidArgument (another shape; neither int32 nor int64).
  StatelessSeed(const Tensor& seed);

  int64_t first() const { return first_; }
  int64_t second() const { return second_; }
  bool operator==(const StatelessSeed&) const = default;

 private:
  int64_t first_;
  int64_t second_;
};

// New seeds of one. Shapes: [num, 2], int64. Errors: InvalidArgument (num below 0).
COHORT_API Tensor split(const StatelessSeed& seed, int64_t num = 2);
// The seed that follows from another and a number, such as a step or the index of an element.
COHORT_API StatelessSeed fold_in(const StatelessSeed& seed, int64_t data);

// ---- the numbers of TensorFlow ------------------------------------------------------------------

// Errors: as RandomGenerator's uniform, normal, ...
// Integers are drawn from [minval, maxval) by a remainder, as TensorFlow's are, and favour some if
// the range is large. Normal numbers use the C library's log, sin and cos, as TensorFlow's do, and
// may differ between C libraries in their last bit.
COHORT_API Tensor stateless_uniform(at::IntArrayRef shape, const StatelessSeed& seed,
                                    const UniformOptions& options = {});
COHORT_API Tensor stateless_uniform_full_int(at::IntArrayRef shape, const StatelessSeed& seed,
                                             DType dtype = int64);
COHORT_API Tensor stateless_normal(at::IntArrayRef shape, const StatelessSeed& seed,
                                   const NormalOptions& options = {});
COHORT_API Tensor stateless_truncated_normal(at::IntArrayRef shape, const StatelessSeed& seed,
                                             const NormalOptions& options = {});
// Classes by their unnormalized logarithms of probabilities; some that are infinite or NaN are
// never drawn. TensorFlow's numbers of large batches depend on its threads; these are those of one.
// Shapes: logits [batch, classes], floating -> [batch, num_samples] of `dtype`, int32 or int64.
// Errors: InvalidArgument (shapes; no classes; dtypes; num_samples below 0).
COHORT_API Tensor stateless_categorical(const Tensor& logits, int64_t num_samples,
                                        const StatelessSeed& seed, DType dtype = int64);
// The rows of `value` in a random order. Shape: [n, ..] -> the same.
// Errors: InvalidArgument (rank 0, 2^32 rows or more).
COHORT_API Tensor stateless_shuffle(const Tensor& value, const StatelessSeed& seed);

// ---- numbers of our own: only their distributions are TensorFlow's ------------------------------

// Parameters are broadcast to `shape`. They have no gradients.
// Errors: InvalidArgument (a parameter that does not fit the shape, or outside of its range; a
// dtype).

struct GammaOptions {
  DType dtype = float32;  // floating
};
// Gamma numbers of the concentration alpha and the rate (inverse scale) beta, both above 0.
COHORT_API Tensor stateless_gamma(at::IntArrayRef shape, const StatelessSeed& seed,
                                  const internal::Operand& alpha,
                                  const internal::Operand& beta = 1.0, GammaOptions options = {});
// Poisson numbers of the mean `lam`, 0 or more. dtype: floating, int32 or int64.
COHORT_API Tensor stateless_poisson(at::IntArrayRef shape, const StatelessSeed& seed,
                                    const internal::Operand& lam, DType dtype = int32);
// How many of `counts` trials, 0 or more, succeed, each with probability `probs`.
// dtype: floating, int32 or int64.
COHORT_API Tensor stateless_binomial(at::IntArrayRef shape, const StatelessSeed& seed,
                                     const internal::Operand& counts,
                                     const internal::Operand& probs, DType dtype = int32);

// ---- with the generator of the calling context --------------------------------------------------

// stateless_categorical with numbers from get_global_generator().
COHORT_API Tensor categorical(const Tensor& logits, int64_t num_samples, DType dtype = int64);

}  // namespace cohort::random
