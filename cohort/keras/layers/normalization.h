// Brings features to mean 0 and variance 1, by numbers that are given or learned from data ahead of
// training.
//
//   layers::Normalization normalization;
//   normalization.adapt(dataset);                  // batches of [batch, features]
//   keras::Sequential model({normalization, layers::Dense(10)});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"
#include "cohort/keras/layers/preprocessing/adapt_options.h"

namespace cohort {
namespace data {
class Dataset;
}

namespace keras::layers {

struct NormalizationOptions {
  // The axes whose elements have a mean and variance of their own; empty: one for all elements.
  std::vector<int64_t> axis = {-1};
  // Both have the sizes of `axis`, or broadcast to them (one number for all). Give both or neither:
  // without them the layer learns.
  Tensor mean = Tensor();
  Tensor variance = Tensor();
  bool invert = false;  // the other way: from mean 0 and variance 1 to these
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// (x - mean) / max(sqrt(variance), 1e-7). Shapes: [batch, ..], any numeric dtype -> the same. The
// default axis fits one example without a batch, [features], too, and a layer that was built for
// one takes batches. With axis {} inputs may have any rank, that of numbers [batch], say. Weights,
// unless given: "mean" and "variance" of the sizes of `axis`, "count" (int64), none of them
// trainable.
class COHORT_API Normalization : public LayerHandle {
 public:
  // Errors: InvalidArgument (mean without variance, or the other way round; neither integers nor
  // floating numbers; a variance below 0). Of the first call: InvalidArgument (an axis that the
  // input does not have; a mean or variance of another size).
  explicit Normalization(NormalizationOptions options = {});

  // Learns mean and variance of all the data; what was learned before is forgotten. Data are
  // batches of what the layer will be called with, or examples ahead of .batch(), vectors
  // [features] of a known size. Made under a strategy's scope, all replicas get them.
  // Errors: FailedPrecondition (made with mean and variance; in a step), InvalidArgument (no data;
  // no tensors; shapes; batches of numbers [batch] with another axis than {}; a dataset without an
  // end and no .steps), what reading the dataset throws.
  void adapt(const data::Dataset& dataset, const AdaptOptions& options = {}) const;
  void adapt(const Tensor& batch) const;
};

}  // namespace keras::layers
}  // namespace cohort
