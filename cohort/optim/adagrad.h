// Adagrad (Duchi et al., 2011), as Keras 2.15 has it.
#pragma once

#include <memory>

#include "cohort/optim/update_rule.h"

namespace cohort::optim {

struct AdagradOptions {
  double learning_rate = 0.001;
  double initial_accumulator_value = 0.1;  // not below 0
  double epsilon = 1e-7;                   // added under the root
};

// Slots: "accumulator".
//   accumulator += g^2;  param -= lr * g / sqrt(accumulator + epsilon)
// Errors: InvalidArgument (names the option and its value).
std::unique_ptr<const UpdateRule> make_adagrad(const AdagradOptions& options = {});

}  // namespace cohort::optim
