// Stochastic gradient descent, with momentum and Nesterov's form of it, as Keras 2.15 has it.
#pragma once

#include <memory>

#include "cohort/optim/update_rule.h"

namespace cohort::optim {

struct SgdOptions {
  double learning_rate = 0.01;
  double momentum = 0;    // in [0, 1]; 0 keeps no slot (Keras allocates "m" even then)
  bool nesterov = false;  // look ahead along the momentum; without momentum it changes nothing
};

// Slots: "m" (none if momentum is 0).
//   m = momentum * m - lr * g;  param += m        (nesterov: param += momentum * m - lr * g)
// Errors: InvalidArgument (names the option and its value).
std::unique_ptr<const UpdateRule> make_sgd(const SgdOptions& options = {});

}  // namespace cohort::optim
