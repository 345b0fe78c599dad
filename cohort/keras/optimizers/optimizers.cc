#include "cohort/keras/optimizers/optimizers.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "cohort/keras/named.h"
#include "cohort/keras/optimizers/optimizer_config.h"
#include "cohort/optim/adadelta.h"
#include "cohort/optim/adagrad.h"
#include "cohort/optim/adam.h"
#include "cohort/optim/adamax.h"
#include "cohort/optim/ftrl.h"
#include "cohort/optim/nadam.h"
#include "cohort/optim/rmsprop.h"
#include "cohort/optim/sgd.h"

namespace cohort::keras::optimizers {
namespace {

template <class Options>
CommonOptions common(const Options& options) {
  return {.clipnorm = options.clipnorm,
          .clipvalue = options.clipvalue,
          .global_clipnorm = options.global_clipnorm,
          .weight_decay = options.weight_decay,
          .use_ema = options.use_ema,
          .ema_momentum = options.ema_momentum,
          .ema_overwrite_frequency = options.ema_overwrite_frequency,
          .gradient_accumulation_steps = options.gradient_accumulation_steps,
          .not_finite = options.not_finite};
}

// Its default says how often, if there are averages.
CommonOptions common(const RMSpropOptions& options) {
  CommonOptions result = common<RMSpropOptions>(options);
  if (!options.use_ema) result.ema_overwrite_frequency = 0;
  return result;
}

using MakeOptimizer = Optimizer (*)();

const std::vector<internal::Named<MakeOptimizer>>& all_optimizers() {
  static const std::vector<internal::Named<MakeOptimizer>> all = {
      {"SGD", {"sgd"}, []() -> Optimizer { return SGD(); }},
      {"Adam", {"adam"}, []() -> Optimizer { return Adam(); }},
      {"AdamW", {"adamw"}, []() -> Optimizer { return AdamW(); }},
      {"RMSprop", {"rmsprop"}, []() -> Optimizer { return RMSprop(); }},
      {"Adagrad", {"adagrad"}, []() -> Optimizer { return Adagrad(); }},
      {"Adadelta", {"adadelta"}, []() -> Optimizer { return Adadelta(); }},
      {"Adamax", {"adamax"}, []() -> Optimizer { return Adamax(); }},
      {"Nadam", {"nadam"}, []() -> Optimizer { return Nadam(); }},
      {"Ftrl", {"ftrl"}, []() -> Optimizer { return Ftrl(); }},
  };
  return all;
}

}  // namespace

// The rules' own learning rates stay unused: `prepare` gets that of the step.

SGD::SGD(const SGDOptions& options)
    : Optimizer(options.name,
                optim::make_sgd({.momentum = options.momentum, .nesterov = options.nesterov}),
                options.learning_rate, common(options)) {
  describe("SGD", internal::optimizer_config(options));
}

Adam::Adam(const AdamOptions& options)
    : Optimizer(options.name,
                optim::make_adam({.beta_1 = options.beta_1,
                                  .beta_2 = options.beta_2,
                                  .epsilon = options.epsilon,
                                  .amsgrad = options.amsgrad}),
                options.learning_rate, common(options)) {
  describe("Adam", internal::optimizer_config(options));
}

AdamW::AdamW(const AdamWOptions& options)
    : Optimizer(options.name,
                optim::make_adam({.beta_1 = options.beta_1,
                                  .beta_2 = options.beta_2,
                                  .epsilon = options.epsilon,
                                  .amsgrad = options.amsgrad}),
                options.learning_rate, common(options)) {
  describe("AdamW", internal::optimizer_config(options));
}

RMSprop::RMSprop(const RMSpropOptions& options)
    : Optimizer(options.name,
                optim::make_rmsprop({.rho = options.rho,
                                     .momentum = options.momentum,
                                     .epsilon = options.epsilon,
                                     .centered = options.centered}),
                options.learning_rate, common(options)) {
  describe("RMSprop", internal::optimizer_config(options));
}

Adagrad::Adagrad(const AdagradOptions& options)
    : Optimizer(options.name,
                optim::make_adagrad({.initial_accumulator_value = options.initial_accumulator_value,
                                     .epsilon = options.epsilon}),
                options.learning_rate, common(options)) {
  describe("Adagrad", internal::optimizer_config(options));
}

Adadelta::Adadelta(const AdadeltaOptions& options)
    : Optimizer(options.name,
                optim::make_adadelta({.rho = options.rho, .epsilon = options.epsilon}),
                options.learning_rate, common(options)) {
  describe("Adadelta", internal::optimizer_config(options));
}

Adamax::Adamax(const AdamaxOptions& options)
    : Optimizer(
          options.name,
          optim::make_adamax(
              {.beta_1 = options.beta_1, .beta_2 = options.beta_2, .epsilon = options.epsilon}),
          options.learning_rate, common(options)) {
  describe("Adamax", internal::optimizer_config(options));
}

Nadam::Nadam(const NadamOptions& options)
    : Optimizer(
          options.name,
          optim::make_nadam(
              {.beta_1 = options.beta_1, .beta_2 = options.beta_2, .epsilon = options.epsilon}),
          options.learning_rate, common(options)) {
  describe("Nadam", internal::optimizer_config(options));
}

Ftrl::Ftrl(const FtrlOptions& options)
    : Optimizer(options.name,
                optim::make_ftrl({.learning_rate_power = options.learning_rate_power,
                                  .initial_accumulator_value = options.initial_accumulator_value,
                                  .l1_regularization_strength = options.l1_regularization_strength,
                                  .l2_regularization_strength = options.l2_regularization_strength,
                                  .l2_shrinkage_regularization_strength =
                                      options.l2_shrinkage_regularization_strength,
                                  .beta = options.beta}),
                options.learning_rate, common(options)) {
  describe("Ftrl", internal::optimizer_config(options));
}

Optimizer get(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  const auto* found = internal::find_named(all_optimizers(), lower);
  if (found != nullptr) return found->value();
  internal::throw_unknown_name("optimizer", name, internal::names_of(all_optimizers()));
}

}  // namespace cohort::keras::optimizers
