// Sorts numbers into bins between boundaries, which are given or learned from data ahead of
// training.
//
//   layers::Discretization ages({.bin_boundaries = {18, 30, 65}});
//   ages(at::tensor({7., 30., 99.}));                       // int64 [3]: 0, 2, 3
//   layers::Discretization learned({.num_bins = 4});
//   learned.adapt(dataset);                                 // about as many numbers in each bin
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

// Give bin_boundaries, or num_bins.
struct DiscretizationOptions {
  // Ascending: bin i has the numbers from boundary i - 1 on that are below boundary i. Compared in
  // float32.
  std::vector<double> bin_boundaries = {};
  // The number of bins for which adapt learns boundaries. Where the data have few different
  // numbers, bins may be empty; where there are fewer than num_bins, there are fewer bins.
  std::optional<int64_t> num_bins = std::nullopt;
  // How far quantiles may be off, as a share of all numbers, in (0, 1): adapt keeps about 1 /
  // epsilon numbers.
  double epsilon = 0.01;
  // "int": a bin for each number. "one_hot": a vector for each, [n] and [n, 1] -> [n, bins].
  // "multi_hot", "count": a vector for each row, [n, m] -> [n, bins]: which bins are there; how
  // often.
  std::string output_mode = "int";
  // The output's dtype; missing: int64 with "int", else backend::floatx().
  std::optional<DType> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: numbers [..] -> [..] with output_mode "int"; see there for the others. RaggedTensor ->
// RaggedTensor of the same rows; with "multi_hot" and "count" a vector a row. NaN is in the last
// bin, as in Keras.
// What adapt has learned is part of a checkpoint, under Keras's name "summary", float32 [2, n].
// Thread safety: calls from any thread, without a lock; adapt from one thread while nobody calls.
// Errors (call): InvalidArgument (no numbers), FailedPrecondition (no boundaries yet).
class COHORT_API Discretization : public LayerHandle {
 public:
  // Errors: InvalidArgument (both or neither of bin_boundaries and num_bins; boundaries that are
  // NaN or not ascending; num_bins below 1; epsilon outside of (0, 1); an unknown output_mode).
  explicit Discretization(DiscretizationOptions options);

  // Learns boundaries between which about as many numbers lie. What was learned before is
  // forgotten. They are those of Keras for the same batches, whose merges move them upwards: take
  // few and large batches, the best being one of all numbers (AdaptOptions::batch_size, or the
  // dataset's). With many batches of 32 the first of four bins may have 40% of the numbers.
  // Errors: FailedPrecondition (made with bin_boundaries; in a step; a model has columns for
  // another number of bins), InvalidArgument (no numbers; NaN, or infinities of both signs with
  // nothing between; no data; a dataset without an end and no .steps), what reading the dataset
  // throws. The layer is then as it was.
  void adapt(const data::Dataset& dataset, const AdaptOptions& options = {}) const;
  void adapt(const Tensor& data, const AdaptOptions& options = {}) const;
  // Empty before adapt.
  std::vector<double> bin_boundaries() const;
};

}  // namespace keras::layers
}  // namespace cohort
