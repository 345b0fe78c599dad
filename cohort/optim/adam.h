// Adam (Kingma and Ba, 2014) and AMSGrad (Reddi et al., 2018), as Keras 2.15 has them.
#pragma once

#include <memory>

#include "cohort/optim/update_rule.h"

namespace cohort::optim {

struct AdamOptions {
  double learning_rate = 0.001;
  double beta_1 = 0.9;    // decay of the gradient's mean, in [0, 1)
  double beta_2 = 0.999;  // decay of its square's mean, in [0, 1)
  double epsilon = 1e-7;  // added to sqrt(v); the paper's "epsilon hat"
  bool amsgrad = false;   // divide by the largest v so far
};

// Slots: "m", "v", with amsgrad also "vhat". With t = iteration + 1:
//   alpha = lr * sqrt(1 - beta_2^t) / (1 - beta_1^t)
//   m += (g - m) * (1 - beta_1);  v += (g^2 - v) * (1 - beta_2)
//   param -= m * alpha / (sqrt(v) + epsilon)      (amsgrad: vhat = max(vhat, v) for v)
// Errors: InvalidArgument (names the option and its value).
std::unique_ptr<const UpdateRule> make_adam(const AdamOptions& options = {});

}  // namespace cohort::optim
