// Optimizers and their schedules as configurations, both ways. For sources only: it includes
// nlohmann-json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cohort/keras/base/fields.h"
#include "cohort/keras/base/named.h"
#include "cohort/keras/optimizers/optimizer.h"
#include "cohort/optim/rule_fields.h"

namespace cohort::keras::optimizers {

// Found by their argument, where fields are written and read (base/fields.h).
// Null for a schedule of the program.
internal::Json field_json(const LearningRate& value);
internal::Json field_json(NotFinite value);
void read_field(const internal::Json& json, LearningRate& value, const std::string& where);
void read_field(const internal::Json& json, NotFinite& value, const std::string& where);

}  // namespace cohort::keras::optimizers

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
  rule_fields(field, options);
}

template <class Options>
keras::Config optimizer_config(const Options& options) {
  FieldWriter writer;
  optimizer_fields(writer, options);
  return ConfigData::config_of(std::move(writer.json));
}

struct OptimizerClass {
  keras::optimizers::Optimizer (*make)();  // with Keras's defaults
  keras::optimizers::Optimizer (*read)(FieldReader& field);
};
// The optimizers that Keras knows by name.
const std::vector<Named<OptimizerClass>>& optimizer_classes();

// Errors: InvalidArgument (an unknown name with the nearest known one).
keras::optimizers::Optimizer optimizer_of_name(std::string_view name);
// Errors: InvalidArgument (`where`; an unknown class with the nearest known name), Unimplemented.
keras::optimizers::Optimizer read_optimizer(const Json& json, const std::string& where);

}  // namespace cohort::internal
