#include "cohort/keras/losses/mean_squared_error.h"

#include "cohort/core/error.h"
#include "cohort/keras/losses/crossentropy.h"

namespace cohort::keras::losses {

MeanSquaredError::MeanSquaredError(const MeanSquaredErrorOptions& options)
    : Loss(
          [name = options.name](const Tensor& y_true, const Tensor& y_pred) {
            const auto [target, value] = internal::match_shapes(y_true, y_pred, name.c_str());
            if (value.dim() == 0) {
              throw InvalidArgumentError(
                  internal::str(name, ": predictions are a scalar; they need a batch dimension"));
            }
            return (value - target).square().mean(-1);
          },
          {.reduction = options.reduction, .name = options.name}) {}

}  // namespace cohort::keras::losses
