// Losses that want a margin of 1 between the right answer and the wrong ones.
//
// Of all of them: Shapes: y_true and y_pred [batch, .., d] -> [batch, ..], as regression.h's.
// Errors: InvalidArgument (other shapes).
#pragma once

#include "cohort/core/export.h"
#include "cohort/keras/losses/loss.h"

namespace cohort::keras::losses {

// The mean over the last dimension of max(1 - y_true * y_pred, 0). Labels are -1 and 1; where a
// batch has only 0 and 1, 0 counts as -1.
class COHORT_API Hinge : public Loss {
 public:
  explicit Hinge(const LossOptions& options = {});
};

// The mean over the last dimension of the squares of Hinge's terms; labels as Hinge's.
class COHORT_API SquaredHinge : public Loss {
 public:
  explicit SquaredHinge(const LossOptions& options = {});
};

// max(wrong - right + 1, 0), where right is the prediction for the label's class and wrong the
// largest one for another. Labels are one-hot along the last dimension.
class COHORT_API CategoricalHinge : public Loss {
 public:
  explicit CategoricalHinge(const LossOptions& options = {});
};

}  // namespace cohort::keras::losses
