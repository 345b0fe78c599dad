// FTRL-Proximal, "follow the regularized leader" (McMahan et al., 2013), as Keras 2.15 has it.
#pragma once

#include <memory>

#include "cohort/optim/update_rule.h"

namespace cohort::optim {

struct FtrlOptions {
  double learning_rate = 0.001;            // above 0
  double learning_rate_power = -0.5;       // not above 0
  double initial_accumulator_value = 0.1;  // not below 0
  // Not below 0, as the next three.
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  double l2_shrinkage_regularization_strength = 0;  // a penalty on the size, on the gradient only
  double beta = 0;
};

// Slots: "accumulator", "linear". With p = -learning_rate_power:
//   new = accumulator + g^2
//   linear += g + 2 * l2_shrinkage * param - (new^p - accumulator^p) / lr * param
//   quadratic = new^p / lr + 2 * (l2 + beta / (2 * lr))
//   param = (linear cut to [-l1, l1] - linear) / quadratic;  accumulator = new
// prepare's Errors: also InvalidArgument (a learning rate of 0).
// With another power than -0.5 the last bit of results is that of the C library.
// Errors: InvalidArgument (names the option and its value).
std::unique_ptr<const UpdateRule> make_ftrl(const FtrlOptions& options = {});

}  // namespace cohort::optim
