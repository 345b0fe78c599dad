#include "cohort/keras/optimizers/optimizer_config.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/named.h"
#include "cohort/keras/optimizers/loss_scale_optimizer.h"
#include "cohort/keras/optimizers/scaled_optimizer.h"
#include "cohort/optim/decays.h"

namespace cohort::internal {
namespace {

using keras::optimizers::LearningRate;

template <class Fields, class Options>
void schedule_fields(Fields& field, Options& options) {
  field.always("name", nullptr);
  field("initial_learning_rate", options.initial_learning_rate);
  if constexpr (requires { options.decay_steps; }) field("decay_steps", options.decay_steps);
  if constexpr (requires { options.decay_rate; }) {
    field("decay_rate", options.decay_rate);
    field("staircase", options.staircase);
  }
  if constexpr (requires { options.end_learning_rate; }) {
    field("end_learning_rate", options.end_learning_rate);
    field("power", options.power);
    field("cycle", options.cycle);
  }
  if constexpr (requires { options.alpha; }) field("alpha", options.alpha);
  if constexpr (requires { options.warmup_steps; }) {
    field("warmup_target", options.warmup_target);
    field("warmup_steps", options.warmup_steps);
  }
  if constexpr (requires { options.first_decay_steps; }) {
    field("first_decay_steps", options.first_decay_steps);
    field("t_mul", options.t_mul);
    field("m_mul", options.m_mul);
  }
}

struct ScheduleClass {
  // Null: of another class.
  Json (*write)(const optim::LearningRateSchedule& schedule);
  LearningRate (*read)(FieldReader& field);
};

template <class Schedule, class Options>
ScheduleClass schedule_class() {
  return {[](const optim::LearningRateSchedule& schedule) -> Json {
            const auto* own = dynamic_cast<const Schedule*>(&schedule);
            if (own == nullptr) return nullptr;
            FieldWriter writer;
            schedule_fields(writer, own->options());
            return writer.json;
          },
          [](FieldReader& field) -> LearningRate {
            Options options;
            schedule_fields(field, options);
            return Schedule(options);
          }};
}

Json write_piecewise(const optim::LearningRateSchedule& schedule) {
  const auto* own = dynamic_cast<const optim::PiecewiseConstantDecay*>(&schedule);
  if (own == nullptr) return nullptr;
  return {{"boundaries", own->boundaries()}, {"values", own->values()}, {"name", nullptr}};
}

LearningRate read_piecewise(FieldReader& field) {
  std::vector<int64_t> boundaries;
  std::vector<double> values;
  field("boundaries", boundaries);
  field("values", values);
  field.without_effect("name", nullptr);
  return optim::PiecewiseConstantDecay(std::move(boundaries), std::move(values));
}

const std::vector<Named<ScheduleClass>>& schedule_classes() {
  using namespace optim;
  static const std::vector<Named<ScheduleClass>> all = {
      {"CosineDecay", {}, schedule_class<CosineDecay, CosineDecayOptions>()},
      {"CosineDecayRestarts",
       {},
       schedule_class<CosineDecayRestarts, CosineDecayRestartsOptions>()},
      {"ExponentialDecay", {}, schedule_class<ExponentialDecay, ExponentialDecayOptions>()},
      {"InverseTimeDecay", {}, schedule_class<InverseTimeDecay, InverseTimeDecayOptions>()},
      {"PiecewiseConstantDecay", {}, ScheduleClass{write_piecewise, read_piecewise}},
      {"PolynomialDecay", {}, schedule_class<PolynomialDecay, PolynomialDecayOptions>()},
  };
  return all;
}

keras::optimizers::Optimizer read_loss_scale_optimizer(FieldReader& field,
                                                       const std::string& where) {
  keras::mixed_precision::LossScaleOptions options;
  field("dynamic", options.dynamic);
  field("initial_scale", options.initial_scale);
  field("dynamic_growth_steps", options.dynamic_growth_steps);
  field.without_effect("is_legacy_optimizer", false);
  const Json* const inner = field.find("inner_optimizer");
  return keras::mixed_precision::LossScaleOptimizer(
      read_optimizer(inner == nullptr ? Json(nullptr) : *inner, where), options);
}

}  // namespace

keras::optimizers::Optimizer optimizer_of_name(std::string_view name) {
  const auto* found = find_named(optimizer_classes(), lower(name));
  if (found != nullptr) return found->value.make();
  throw_unknown_name("optimizer", name, names_of(optimizer_classes()));
}

keras::optimizers::Optimizer read_optimizer(const Json& json, const std::string& where) {
  if (json.is_string()) return optimizer_of_name(json.get<std::string>());
  const ClassAndConfig parts = class_and_config(json, where);
  const std::string here = str(where, " (", parts.class_name, ")");
  if (parts.class_name == kLossScaleClass || parts.class_name == kOlderLossScaleClass) {
    return read_fields(parts.config, here,
                       [&](FieldReader& field) { return read_loss_scale_optimizer(field, here); });
  }
  const auto* found = find_named(optimizer_classes(), parts.class_name);
  if (found == nullptr) {
    throw_unknown_name("optimizer", parts.class_name, names_of(optimizer_classes()), where);
  }
  return read_fields(parts.config, here, found->value.read);
}

}  // namespace cohort::internal

namespace cohort::keras::optimizers {

using internal::Json;

Json field_json(const LearningRate& value) {
  if (value.schedule() == nullptr) return value.value();
  for (const internal::Named<internal::ScheduleClass>& entry : internal::schedule_classes()) {
    Json config = entry.value.write(*value.schedule());
    if (config.is_null()) continue;
    return internal::json_of(
        internal::serialized("keras.optimizers.schedules", entry.class_name, std::move(config)));
  }
  return nullptr;
}

void read_field(const Json& json, LearningRate& value, const std::string& where) {
  if (json.is_number()) {
    value = json.get<double>();
    return;
  }
  const internal::ClassAndConfig parts = internal::class_and_config(json, where);
  const auto* found = internal::find_named(internal::schedule_classes(), parts.class_name);
  if (found == nullptr) {
    internal::throw_unknown_name("schedule", parts.class_name,
                                 internal::names_of(internal::schedule_classes()), where);
  }
  value = internal::read_fields(parts.config, internal::str(where, " (", parts.class_name, ")"),
                                found->value.read);
}

namespace {

constexpr std::pair<const char*, NotFinite> kNotFinite[] = {
    {"allow", NotFinite::ALLOW}, {"skip", NotFinite::SKIP}, {"raise", NotFinite::RAISE}};

}  // namespace

Json field_json(NotFinite value) {
  for (const auto& [name, known] : kNotFinite) {
    if (known == value) return name;
  }
  return nullptr;
}

void read_field(const Json& json, NotFinite& value, const std::string& where) {
  for (const auto& [name, known] : kNotFinite) {
    if (json == name) {
      value = known;
      return;
    }
  }
  internal::throw_wrong_field(json, "'allow', 'skip' or 'raise'", where);
}

}  // namespace cohort::keras::optimizers
