// Losses under a strategy. The losses of all replicas are summed, so each must be divided by the
// global batch size.
//
//   Tensor loss = nn::compute_average_loss(per_example_losses, {.global_batch_size = 128});
//   if (auto losses = model.losses(); !losses.empty()) {
//     loss = loss + nn::scale_regularization_loss(add_n(losses));
//   }
#pragma once

#include <optional>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort {
namespace nn {

struct AverageLossOptions {
  // Multiplies the losses. Shape: [], or broadcasts to them; undefined: 1.
  Tensor sample_weight = Tensor();
  // The number by which the sum is divided; missing: num_replicas_in_sync times the number of rows
  // on this replica, so that a short batch weighs as much as a full one. 0 gives 0.
  std::optional<int64_t> global_batch_size = std::nullopt;
};

// sum(per_example_loss * sample_weight) / global_batch_size. A replica without rows contributes 0.
// Shape: [batch, ..] -> [], of the same dtype. In a replica or outside of a strategy.
// Errors: InvalidArgument (rank 0; sample_weight's shape; a negative batch size),
// FailedPrecondition (cross-replica context).
COHORT_API Tensor compute_average_loss(const Tensor& per_example_loss,
                                       const AverageLossOptions& options = {});

// sum(loss) / num_replicas_in_sync: for a loss that is the same on all replicas, such as a penalty
// on weights. Shape: [..] -> [].
// Errors: FailedPrecondition (cross-replica context).
COHORT_API Tensor scale_regularization_loss(const Tensor& loss);

}  // namespace nn

// The sum of tensors of the same shape and dtype.
// Errors: InvalidArgument (no tensors; shapes or dtypes differ, naming the first that does).
COHORT_API Tensor add_n(const std::vector<Tensor>& tensors);

}  // namespace cohort
