// The losses whose labels and predictions have one shape.
#pragma once

#include <functional>

#include "cohort/keras/losses/loss.h"

namespace cohort::internal {

// A loss per example from labels and predictions of one shape and dtype.
using MatchedLoss = std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;

// `loss` for whatever a program passes (see match_shapes in crossentropy.h), called `own_name`
// where the options have no name.
keras::losses::Loss matched_loss(keras::losses::LossOptions options, const char* own_name,
                                 MatchedLoss loss);

}  // namespace cohort::internal
