// Adadelta (Zeiler, 2012), as Keras 2.15 has it.
#pragma once

#include <memory>

#include "cohort/optim/update_rule.h"

namespace cohort::optim {

struct AdadeltaOptions {
  double learning_rate = 0.001;  // 1 is the paper's form
  double rho = 0.95;             // decay of both means, in [0, 1]
  double epsilon = 1e-7;         // added under the roots
};

// Slots: "accumulated_grad", "accumulated_delta_var".
//   grad = rho * grad + (1 - rho) * g^2
//   delta = -sqrt(delta_var + epsilon) * g / sqrt(grad + epsilon)
//   delta_var = rho * delta_var + (1 - rho) * delta^2;  param += lr * delta
// Errors: InvalidArgument (names the option and its value).
std::unique_ptr<const UpdateRule> make_adadelta(const AdadeltaOptions& options = {});

}  // namespace cohort::optim
