#include "cohort/keras/optimizers/optimizers.h"

#include <vector>

#include "cohort/keras/base/named.h"
#include "cohort/keras/optimizers/optimizer_config.h"
#include "cohort/optim/adadelta.h"
#include "cohort/optim/adafactor.h"
#include "cohort/optim/adagrad.h"
#include "cohort/optim/adam.h"
#include "cohort/optim/adamax.h"
#include "cohort/optim/ftrl.h"
#include "cohort/optim/lion.h"
#include "cohort/optim/nadam.h"
#include "cohort/optim/rmsprop.h"
#include "cohort/optim/rule_fields.h"
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

// The rule's options are those of the same names. Its own learning rate stays unused: `prepare`
// gets that of the step.
template <class RuleOptions, class Options>
RuleOptions rule_options(const Options& options) {
  RuleOptions result;
  internal::rule_fields([](const char*, auto& to, const auto& from) { to = from; }, result,
                        options);
  return result;
}

template <class Class, class Options>
Optimizer read(internal::FieldReader& field) {
  Options options;
  internal::optimizer_fields(field, options);
  // Keras takes any of them without averages.
  if (!options.use_ema) options.ema_overwrite_frequency = Options().ema_overwrite_frequency;
  return Class(options);
}

template <class Class, class Options>
constexpr internal::OptimizerClass class_of = {[]() -> Optimizer { return Class(); },
                                               read<Class, Options>};

}  // namespace

SGD::SGD(const SGDOptions& options)
    : Optimizer(options.name, optim::make_sgd(rule_options<optim::SgdOptions>(options)),
                options.learning_rate, common(options)) {
  describe("SGD", internal::optimizer_config(options));
}

Adam::Adam(const AdamOptions& options)
    : Optimizer(options.name, optim::make_adam(rule_options<optim::AdamOptions>(options)),
                options.learning_rate, common(options)) {
  describe("Adam", internal::optimizer_config(options));
}

AdamW::AdamW(const AdamWOptions& options)
    : Optimizer(options.name, optim::make_adam(rule_options<optim::AdamOptions>(options)),
                options.learning_rate, common(options)) {
  describe("AdamW", internal::optimizer_config(options));
}

RMSprop::RMSprop(const RMSpropOptions& options)
    : Optimizer(options.name, optim::make_rmsprop(rule_options<optim::RmspropOptions>(options)),
                options.learning_rate, common(options)) {
  describe("RMSprop", internal::optimizer_config(options));
}

Adagrad::Adagrad(const AdagradOptions& options)
    : Optimizer(options.name, optim::make_adagrad(rule_options<optim::AdagradOptions>(options)),
                options.learning_rate, common(options)) {
  describe("Adagrad", internal::optimizer_config(options));
}

Adadelta::Adadelta(const AdadeltaOptions& options)
    : Optimizer(options.name, optim::make_adadelta(rule_options<optim::AdadeltaOptions>(options)),
                options.learning_rate, common(options)) {
  describe("Adadelta", internal::optimizer_config(options));
}

Adafactor::Adafactor(const AdafactorOptions& options)
    : Optimizer(options.name, optim::make_adafactor(rule_options<optim::AdafactorOptions>(options)),
                options.learning_rate, common(options)) {
  describe("Adafactor", internal::optimizer_config(options));
}

Adamax::Adamax(const AdamaxOptions& options)
    : Optimizer(options.name, optim::make_adamax(rule_options<optim::AdamaxOptions>(options)),
                options.learning_rate, common(options)) {
  describe("Adamax", internal::optimizer_config(options));
}

Nadam::Nadam(const NadamOptions& options)
    : Optimizer(options.name, optim::make_nadam(rule_options<optim::NadamOptions>(options)),
                options.learning_rate, common(options)) {
  describe("Nadam", internal::optimizer_config(options));
}

Lion::Lion(const LionOptions& options)
    : Optimizer(options.name, optim::make_lion(rule_options<optim::LionOptions>(options)),
                options.learning_rate, common(options)) {
  describe("Lion", internal::optimizer_config(options));
}

Ftrl::Ftrl(const FtrlOptions& options)
    : Optimizer(options.name, optim::make_ftrl(rule_options<optim::FtrlOptions>(options)),
                options.learning_rate, common(options)) {
  describe("Ftrl", internal::optimizer_config(options));
}

Optimizer get(std::string_view name) { return internal::optimizer_of_name(name); }

}  // namespace cohort::keras::optimizers

namespace cohort::internal {

const std::vector<Named<OptimizerClass>>& optimizer_classes() {
  using namespace keras::optimizers;
  static const std::vector<Named<OptimizerClass>> all = {
      {"SGD", {"sgd"}, class_of<SGD, SGDOptions>},
      {"Adam", {"adam"}, class_of<Adam, AdamOptions>},
      {"AdamW", {"adamw"}, class_of<AdamW, AdamWOptions>},
      {"RMSprop", {"rmsprop"}, class_of<RMSprop, RMSpropOptions>},
      {"Adafactor", {"adafactor"}, class_of<Adafactor, AdafactorOptions>},
      {"Adagrad", {"adagrad"}, class_of<Adagrad, AdagradOptions>},
      {"Adadelta", {"adadelta"}, class_of<Adadelta, AdadeltaOptions>},
      {"Adamax", {"adamax"}, class_of<Adamax, AdamaxOptions>},
      {"Nadam", {"nadam"}, class_of<Nadam, NadamOptions>},
      {"Lion", {"lion"}, class_of<Lion, LionOptions>},
      {"Ftrl", {"ftrl"}, class_of<Ftrl, FtrlOptions>},
  };
  return all;
}

}  // namespace cohort::internal
