// What Keras 2.15's optimizers can do beside their formula: clip each element of the gradient, let
// weights decay, and keep moving averages of them.
#pragma once

#include <memory>

#include "cohort/optim/update_rule.h"

namespace cohort::optim {

// Slots: those of `rule`, then with ema_momentum "average", which starts as the variable.
//   param -= param * weight_decay * lr;  rule's formula
//   average = ema_momentum * average + (1 - ema_momentum) * param
// Returns `rule` itself where the options ask for nothing.
// Errors: InvalidArgument (names the option and its value; ema_overwrite_frequency without
// ema_momentum).
std::unique_ptr<const UpdateRule> make_transformed(std::unique_ptr<const UpdateRule> rule,
                                                   const TransformOptions& options);

// The same without weight decay, for variables that are excluded from it: it has the same slots,
// and takes the same StepScalars. nullptr where `rule` lets no weights decay.
std::unique_ptr<const UpdateRule> without_weight_decay(const UpdateRule& rule);

}  // namespace cohort::optim
