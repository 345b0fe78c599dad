// Adamax (Kingma and Ba, 2014): Adam with the largest gradient in place of the mean square, as
// Keras 2.15 has it.
#pragma once

#include <memory>

#include "cohort/optim/update_rule.h"

namespace cohort::optim {

struct AdamaxOptions {
  double learning_rate = 0.001;
  double beta_1 = 0.9;    // decay of the gradient's mean, in [0, 1)
  double beta_2 = 0.999;  // decay of its largest size, in [0, 1)
  double epsilon = 1e-7;  // added to u
};

// Slots: "m", "u". With t = iteration + 1:
//   m += (g - m) * (1 - beta_1);  u = max(beta_2 * u, |g|)
//   param -= lr * m / ((1 - beta_1^t) * (u + epsilon))
// Errors: InvalidArgument (names the option and its value).
std::unique_ptr<const UpdateRule> make_adamax(const AdamaxOptions& options = {});

}  // namespace cohort::optim
