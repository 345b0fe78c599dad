// RMSprop (Hinton, 2012), plain or centered, with momentum, as Keras 2.15 has it.
#pragma once

#include <memory>

#include "cohort/optim/update_rule.h"

namespace cohort::optim {

struct RmspropOptions {
  double learning_rate = 0.001;
  double rho = 0.9;       // decay of the squared gradient's mean, in [0, 1]
  double momentum = 0;    // in [0, 1]; plain, not Nesterov's
  double epsilon = 1e-7;  // added under the root
  bool centered = false;  // divide by an estimate of the variance instead of the second moment
};

// Slots: "velocity", with momentum also "momentum", with centered also "average_gradient".
//   velocity = rho * velocity + (1 - rho) * g^2
//   centered: average = rho * average + (1 - rho) * g
//   increment = lr * g / sqrt(velocity [- average^2] + epsilon)
//   param -= increment            (momentum: p = momentum * p + increment;  param -= p)
// Errors: InvalidArgument (names the option and its value).
std::unique_ptr<const UpdateRule> make_rmsprop(const RmspropOptions& options = {});

}  // namespace cohort::optim
