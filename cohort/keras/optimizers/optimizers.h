// The optimizers, with the formulas and defaults of Keras 2.15.
//
//   optimizers::Adam adam({.learning_rate = 1e-3});
//   optimizers::SGD sgd({.learning_rate = optim::ExponentialDecay({...}), .momentum = 0.9});
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/optimizers/optimizer.h"

namespace cohort::keras::optimizers {

struct SGDOptions {
  LearningRate learning_rate = 0.01;
  double momentum = 0;    // in [0, 1]
  bool nesterov = false;  // look ahead along the momentum
  std::string name = "SGD";
};
// See optim/sgd.h. Errors: InvalidArgument (names the option and its value); of the others, too.
class COHORT_API SGD : public Optimizer {
 public:
  explicit SGD(const SGDOptions& options = {});
};

struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // decay of the gradient's mean, in [0, 1)
  double beta_2 = 0.999;  // decay of its square's mean, in [0, 1)
  double epsilon = 1e-7;  // added to the root
  bool amsgrad = false;   // divide by the largest second moment so far
  std::string name = "Adam";
};
// See optim/adam.h.
class COHORT_API Adam : public Optimizer {
 public:
  explicit Adam(const AdamOptions& options = {});
};

struct RMSpropOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.9;       // decay of the squared gradient's mean, in [0, 1]
  double momentum = 0;    // in [0, 1]
  double epsilon = 1e-7;  // added under the root
  bool centered = false;  // divide by the variance instead of the second moment
  std::string name = "RMSprop";
};
// See optim/rmsprop.h.
class COHORT_API RMSprop : public Optimizer {
 public:
  explicit RMSprop(const RMSpropOptions& options = {});
};

}  // namespace cohort::keras::optimizers
