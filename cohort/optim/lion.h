// Lion (Chen et al., 2023, "Symbolic Discovery of Optimization Algorithms"), as Keras 2.15 has it.
#pragma once

#include <memory>

#include "cohort/optim/update_rule.h"

namespace cohort::optim {

struct LionOptions {
  double learning_rate = 0.001;
  double beta_1 = 0.9;   // the momentum's share of the step, in (0, 1]
  double beta_2 = 0.99;  // decay of the momentum, in [0, 1)
};

// Slots: "m".
//   param -= lr * sign(beta_1 * m + (1 - beta_1) * g)
//   m = beta_2 * m + (1 - beta_2) * g
// sign(0) is 0, that of a NaN is NaN. Weight decay is the paper's, lr * decay * param, taken off
// before the step.
// Errors: InvalidArgument (names the option and its value).
std::unique_ptr<const UpdateRule> make_lion(const LionOptions& options = {});

}  // namespace cohort::optim
