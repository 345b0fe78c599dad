// Nadam (Dozat, 2016): Adam that looks ahead along the momentum, as Keras 2.15 has it.
#pragma once

#include <memory>

#include "cohort/optim/update_rule.h"

namespace cohort::optim {

struct NadamOptions {
  double learning_rate = 0.001;
  double beta_1 = 0.9;    // decay of the gradient's mean, in [0, 1)
  double beta_2 = 0.999;  // decay of its square's mean, in [0, 1)
  double epsilon = 1e-7;  // added to the root
};

// Slots: "m", "v". With t = iteration + 1, u(t) = beta_1 * (1 - 0.96^t / 2) and U(t) = u(1) ..
// u(t):
//   m += (g - m) * (1 - beta_1);  v += (g^2 - v) * (1 - beta_2)
//   m_hat = u(t + 1) * m / (1 - U(t + 1)) + (1 - u(t)) * g / (1 - U(t))
//   param -= lr * m_hat / (sqrt(v / (1 - beta_2^t)) + epsilon)
// Derived: "_u_product", U(iterations).
// Errors: InvalidArgument (names the option and its value).
std::unique_ptr<const UpdateRule> make_nadam(const NadamOptions& options = {});

}  // namespace cohort::optim
