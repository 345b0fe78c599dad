#include "cohort/optim/make_rule.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/optim/adadelta.h"
#include "cohort/optim/adagrad.h"
#include "cohort/optim/adam.h"
#include "cohort/optim/adamax.h"
#include "cohort/optim/ftrl.h"
#include "cohort/optim/nadam.h"
#include "cohort/optim/rmsprop.h"
#include "cohort/optim/sgd.h"
#include "cohort/optim/transformed.h"

namespace cohort::optim {
namespace {

using internal::str;

// Takes the values of a config one by one.
class Values {
 public:
  explicit Values(const RuleConfig& config) : config_(config) {}

  double operator()(std::string_view name) {
    for (const auto& [given, value] : config_.values) {
      if (given != name) continue;
      ++taken_;
      return value;
    }
    throw InvalidArgumentError(str("update rule ", config_.name, " got no '", name, "'"));
  }

  void check_all_taken() const {
    if (taken_ == config_.values.size()) return;
    throw InvalidArgumentError(str("update rule ", config_.name, " takes ", taken_,
                                   " hyper-parameters, but got ", config_.values.size()));
  }

 private:
  const RuleConfig& config_;
  size_t taken_ = 0;
};

using Rule = std::unique_ptr<const UpdateRule>;

struct Maker {
  std::string_view name;
  Rule (*make)(Values& value);
};
constexpr Maker kMakers[] = {
    {"Adagrad",
     [](Values& value) {
       return make_adagrad({.initial_accumulator_value = value("initial_accumulator_value"),
                            .epsilon = value("epsilon")});
     }},
    {"Adadelta",
     [](Values& value) {
       return make_adadelta({.rho = value("rho"), .epsilon = value("epsilon")});
     }},
    {"Adamax",
     [](Values& value) {
       return make_adamax(
           {.beta_1 = value("beta_1"), .beta_2 = value("beta_2"), .epsilon = value("epsilon")});
     }},
    {"Nadam",
     [](Values& value) {
       return make_nadam(
           {.beta_1 = value("beta_1"), .beta_2 = value("beta_2"), .epsilon = value("epsilon")});
     }},
    {"Ftrl",
     [](Values& value) {
       return make_ftrl(
           {.learning_rate_power = value("learning_rate_power"),
            .initial_accumulator_value = value("initial_accumulator_value"),
            .l1_regularization_strength = value("l1_regularization_strength"),
            .l2_regularization_strength = value("l2_regularization_strength"),
            .l2_shrinkage_regularization_strength = value("l2_shrinkage_regularization_strength"),
            .beta = value("beta")});
     }},
    {"SGD",
     [](Values& value) {
       return make_sgd({.momentum = value("momentum"), .nesterov = value("nesterov") != 0});
     }},
    {"Adam",
     [](Values& value) {
       return make_adam({.beta_1 = value("beta_1"),
                         .beta_2 = value("beta_2"),
                         .epsilon = value("epsilon"),
                         .amsgrad = value("amsgrad") != 0});
     }},
    {"RMSprop",
     [](Values& value) {
       return make_rmsprop({.rho = value("rho"),
                            .momentum = value("momentum"),
                            .epsilon = value("epsilon"),
                            .centered = value("centered") != 0});
     }},
};

}  // namespace

Rule make_rule(const RuleConfig& config) {
  const auto* maker = std::find_if(std::begin(kMakers), std::end(kMakers),
                                   [&](const Maker& known) { return known.name == config.name; });
  if (maker == std::end(kMakers)) {
    throw InvalidArgumentError(str("there is no update rule '", config.name, "'"));
  }
  Values values(config);
  Rule rule = maker->make(values);
  values.check_all_taken();
  return config.transform ? make_transformed(std::move(rule), *config.transform) : std::move(rule);
}

}  // namespace cohort::optim
