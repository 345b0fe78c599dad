// The loss of regression.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/losses/loss.h"

namespace cohort::keras::losses {

struct MeanSquaredErrorOptions {
  Reduction reduction = Reduction::AUTO;
  std::string name = "mean_squared_error";
};

// The mean over the last dimension of (y_true - y_pred)^2.
// Shapes: y_true and y_pred [batch, .., d] -> [batch, ..]; one of them may lack or have a last
// dimension of 1. Errors: InvalidArgument (other shapes).
class COHORT_API MeanSquaredError : public Loss {
 public:
  explicit MeanSquaredError(const MeanSquaredErrorOptions& options = {});
};

}  // namespace cohort::keras::losses
