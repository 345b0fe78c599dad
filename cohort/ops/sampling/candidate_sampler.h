// Candidates for losses that look at a few of many classes: drawn classes, and how often each class
// is expected among them.
//
//   auto sampled = tf::random::log_uniform_candidate_sampler(labels, 1, 64, true, 50'000);
//   Tensor losses = nn::nce_loss(weights, biases, labels, inputs, 64, 50'000,
//                                {.sampled_values = sampled});
#pragma once

#include <cstdint>
#include <optional>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::random {

// Counts are expected numbers of occurrences, of unique candidates probabilities to be among them.
struct SampledCandidates {
  Tensor sampled_candidates;      // [num_sampled], int64
  Tensor true_expected_count;     // [batch, num_true], float32
  Tensor sampled_expected_count;  // [num_sampled], float32
};

struct CandidateSamplerOptions {
  // The same candidates at each call. Missing: drawn from get_global_generator().
  std::optional<uint64_t> seed = std::nullopt;
};

// Draws `num_sampled` classes below `range_max`; with `unique` none comes twice. Every class is as
// likely as another (uniform), or class c as log((c + 2) / (c + 1)) / log(range_max + 1)
// (log_uniform: for classes in the order of how frequent they are, the most frequent first). The
// classes drawn are not those that TensorFlow draws from the same seed.
// Shapes: true_classes [batch, num_true], integers.
// Errors: InvalidArgument (shapes; numbers below 1; unique, and fewer classes than num_sampled; a
// true class outside of the range).
COHORT_API SampledCandidates uniform_candidate_sampler(const Tensor& true_classes, int64_t num_true,
                                                       int64_t num_sampled, bool unique,
                                                       int64_t range_max,
                                                       CandidateSamplerOptions options = {});
COHORT_API SampledCandidates log_uniform_candidate_sampler(const Tensor& true_classes,
                                                           int64_t num_true, int64_t num_sampled,
                                                           bool unique, int64_t range_max,
                                                           CandidateSamplerOptions options = {});

}  // namespace cohort::random
