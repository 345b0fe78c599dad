// Adafactor (Shazeer and Stern, 2018), as Keras 2.15 has it.
#pragma once

#include <memory>

#include "cohort/optim/update_rule.h"

namespace cohort::optim {

struct AdafactorOptions {
  double beta_2_decay = -0.8;  // the second moment's decay at step t is 1 - t^beta_2_decay
  double epsilon_1 = 1e-30;    // added to the squared gradient
  double epsilon_2 = 1e-3;     // the least size of a variable, of which a step is a share
  double clip_threshold = 1;   // the root mean square of a step's direction is at most this
};

// Updates whole variables: means over rows and columns, and over a variable, are part of the
// formula. Slots: "r" (the variable's shape without its last dimension), "c" (without the last but
// one), "v" (its shape). With t = iteration + 1, rate = min(lr, 1 / sqrt(t)), beta = 1 -
// t^beta_2_decay and s = g^2 + epsilon_1:
//   r += (mean over columns of s - r) * (1 - beta);  c += (mean over rows of s - c) * (1 - beta)
//   v = r * c / mean(r)          of a variable with less than two dimensions: v += (s - v) (1 -
//                                beta), and r and c are scalars that are not used
//   u = g / sqrt(v);  u /= max(1, rms(u) / clip_threshold)
//   param -= max(epsilon_2, rms(param)) * rate * u
// Errors: InvalidArgument (names the option and its value).
std::unique_ptr<const UpdateRule> make_adafactor(const AdafactorOptions& options = {});

}  // namespace cohort::optim
