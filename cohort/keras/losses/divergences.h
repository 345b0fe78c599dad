// Losses of predictions that are distributions, or the means of some.
//
// Of both: Shapes: y_true and y_pred [batch, .., d] -> [batch, ..], as regression.h's.
// Errors: InvalidArgument (other shapes).
#pragma once

#include "cohort/core/export.h"
#include "cohort/keras/losses/loss.h"

namespace cohort::keras::losses {

// The sum over the last dimension of y_true * log(y_true / y_pred), both cut to [1e-7, 1].
class COHORT_API KLDivergence : public Loss {
 public:
  explicit KLDivergence(const LossOptions& options = {});
};

// The mean over the last dimension of y_pred - y_true * log(y_pred + 1e-7): counts whose means
// are predicted.
class COHORT_API Poisson : public Loss {
 public:
  explicit Poisson(const LossOptions& options = {});
};

}  // namespace cohort::keras::losses
