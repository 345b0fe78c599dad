#include "cohort/keras/optimizers/optimizers.h"

#include "cohort/optim/adam.h"
#include "cohort/optim/rmsprop.h"
#include "cohort/optim/sgd.h"

namespace cohort::keras::optimizers {

// The rules' own learning rates stay unused: `prepare` gets that of the step.

SGD::SGD(const SGDOptions& options)
    : Optimizer(options.name,
                optim::make_sgd({.momentum = options.momentum, .nesterov = options.nesterov}),
                options.learning_rate) {}

Adam::Adam(const AdamOptions& options)
    : Optimizer(options.name,
                optim::make_adam({.beta_1 = options.beta_1,
                                  .beta_2 = options.beta_2,
                                  .epsilon = options.epsilon,
                                  .amsgrad = options.amsgrad}),
                options.learning_rate) {}

RMSprop::RMSprop(const RMSpropOptions& options)
    : Optimizer(options.name,
                optim::make_rmsprop({.rho = options.rho,
                                     .momentum = options.momentum,
                                     .epsilon = options.epsilon,
                                     .centered = options.centered}),
                options.learning_rate) {}

}  // namespace cohort::keras::optimizers
