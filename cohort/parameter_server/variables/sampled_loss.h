// Losses of many classes that look at the true ones and a few drawn ones, in training: of weights
// that ps tasks keep, only the rows of those classes are read, and the gradient has them alone.
// Evaluation takes all classes: sparse_softmax_cross_entropy_with_logits of their logits.
//
//   Tensor losses = nn::sampled_softmax_loss(weights, biases, labels, inputs, 64, classes);
#pragma once

#include <cstdint>
#include <optional>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/ops/sampling/candidate_sampler.h"
#include "cohort/parameter_server/variables/embedding_lookup.h"

namespace cohort::nn {

struct SampledSoftmaxLossOptions {
  int64_t num_true = 1;
  // Missing: those of random::log_uniform_candidate_sampler, unique.
  std::optional<random::SampledCandidates> sampled_values = std::nullopt;
  // Drawn classes that are an example's own do not count. (TensorFlow lets all but the last of
  // equal ones count.)
  bool remove_accidental_hits = true;
  std::optional<uint64_t> seed = std::nullopt;  // of the sampler
};

struct NceLossOptions {
  int64_t num_true = 1;
  // See SampledSoftmaxLossOptions.
  std::optional<random::SampledCandidates> sampled_values = std::nullopt;
  bool remove_accidental_hits = false;
};

// The softmax crossentropy among each example's true classes and the drawn ones, each logit less
// the logarithm of how often its class is expected to be drawn (Jean et al., 2014).
// Shapes: weights [num_classes, dim], biases [num_classes], labels [batch, num_true] of int32 or
// int64, inputs [batch, dim], floating -> [batch].
// Errors: InvalidArgument (shapes; a label that is no class; what the sampler throws).
COHORT_API Tensor sampled_softmax_loss(const EmbeddingTable& weights, const EmbeddingTable& biases,
                                       const Tensor& labels, const Tensor& inputs,
                                       int64_t num_sampled, int64_t num_classes,
                                       const SampledSoftmaxLossOptions& options = {});
// The sum of sigmoid crossentropies that tell an example's true classes from the drawn ones (noise
// contrastive estimation; Gutmann and Hyvärinen, 2010). Shapes and errors: the same.
COHORT_API Tensor nce_loss(const EmbeddingTable& weights, const EmbeddingTable& biases,
                           const Tensor& labels, const Tensor& inputs, int64_t num_sampled,
                           int64_t num_classes, const NceLossOptions& options = {});

}  // namespace cohort::nn
