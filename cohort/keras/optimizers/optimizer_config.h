// Optimizers and their schedules as configurations, both ways. For sources only: it includes
// nlohmann-json.
#pragma once

#include <string>

#include "cohort/keras/optimizers/optimizers.h"
#include "cohort/keras/saving/fields.h"

namespace cohort::internal {

template <class Fields, class Options>
void optimizer_fields(Fields& field, Options& options) {
  field("name", options.name);
  field("learning_rate", options.learning_rate);
  field("weight_decay", options.weight_decay);
  field.zero_is_null("clipnorm", options.clipnorm);
  field.zero_is_null("clipvalue", options.clipvalue);
  field.zero_is_null("global_clipnorm", options.global_clipnorm);
  field("use_ema", options.use_ema);
  field("ema_momentum", options.ema_momentum);
  field.zero_is_null("ema_overwrite_frequency", options.ema_overwrite_frequency);
  field.unless("gradient_accumulation_steps", options.gradient_accumulation_steps, int64_t{1});
  field.unless("not_finite", options.not_finite, keras::optimizers::NotFinite::ALLOW);
  field.without_effect("jit_compile", false);
  field.always("is_legacy_optimizer", false);
  if constexpr (requires { options.beta_1; }) {
    field("beta_1", options.beta_1);
    field("beta_2", options.beta_2);
  }
  if constexpr (requires { options.amsgrad; }) field("amsgrad", options.amsgrad);
  if constexpr (requires { options.rho; }) field("rho", options.rho);
  if constexpr (requires { options.epsilon; }) field("epsilon", options.epsilon);
  if constexpr (requires { options.momentum; }) field("momentum", options.momentum);
  if constexpr (requires { options.nesterov; }) field("nesterov", options.nesterov);
  if constexpr (requires { options.centered; }) field("centered", options.centered);
  if constexpr (requires { options.initial_accumulator_value; }) {
    field("initial_accumulator_value", options.initial_accumulator_value);
  }
  if constexpr (requires { options.learning_rate_power; }) {
    field("learning_rate_power", options.learning_rate_power);
    field("l1_regularization_strength", options.l1_regularization_strength);
    field("l2_regularization_strength", options.l2_regularization_strength);
    field("l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength);
    field("beta", options.beta);
  }
}

template <class Options>
keras::Config optimizer_config(const Options& options) {
  FieldWriter writer;
  optimizer_fields(writer, options);
  return ConfigData::config_of(std::move(writer.json));
}

// Errors: InvalidArgument (`where`; an unknown class with the nearest known name), Unimplemented.
keras::optimizers::Optimizer read_optimizer(const Json& json, const std::string& where);

}  // namespace cohort::internal
