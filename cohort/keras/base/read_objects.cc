// Initializers, regularizers and constraints of configurations.
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/fields.h"
#include "cohort/keras/base/named.h"

namespace cohort::internal {
namespace {

using keras::constraints::Constraint;
using keras::initializers::Initializer;
using keras::regularizers::Regularizer;

using MakeInitializer = Initializer (*)(FieldReader& field);

std::optional<uint64_t> read_seed(FieldReader& field) {
  std::optional<uint64_t> seed;
  field("seed", seed);
  return seed;
}

template <Initializer (*make)(const keras::initializers::SeedOptions&)>
Initializer make_seeded(FieldReader& field) {
  return make({.seed = read_seed(field)});
}

template <Initializer (*make)(const keras::initializers::RandomNormalOptions&)>
Initializer make_normal(FieldReader& field) {
  keras::initializers::RandomNormalOptions options;
  field("mean", options.mean);
  field("stddev", options.stddev);
  options.seed = read_seed(field);
  return make(options);
}

Initializer make_constant(FieldReader& field) {
  double value = 0;
  field("value", value);
  return keras::initializers::Constant(value);
}

Initializer make_random_uniform(FieldReader& field) {
  keras::initializers::RandomUniformOptions options;
  field("minval", options.minval);
  field("maxval", options.maxval);
  options.seed = read_seed(field);
  return keras::initializers::RandomUniform(options);
}

Initializer make_variance_scaling(FieldReader& field) {
  keras::initializers::VarianceScalingOptions options;
  field("scale", options.scale);
  field("mode", options.mode);
  field("distribution", options.distribution);
  if (options.distribution == "normal")
    options.distribution = "truncated_normal";  // Keras' other name
  options.seed = read_seed(field);
  return keras::initializers::VarianceScaling(options);
}

Initializer make_orthogonal(FieldReader& field) {
  keras::initializers::OrthogonalOptions options;
  field("gain", options.gain);
  options.seed = read_seed(field);
  return keras::initializers::Orthogonal(options);
}

const std::vector<Named<MakeInitializer>>& initializer_classes() {
  using namespace keras::initializers;
  static const std::vector<Named<MakeInitializer>> all = {
      {"Zeros", {"zeros"}, [](FieldReader&) { return Zeros(); }},
      {"Ones", {"ones"}, [](FieldReader&) { return Ones(); }},
      {"Constant", {"constant"}, make_constant},
      {"GlorotUniform", {"glorot_uniform"}, make_seeded<GlorotUniform>},
      {"GlorotNormal", {"glorot_normal"}, make_seeded<GlorotNormal>},
      {"HeUniform", {"he_uniform"}, make_seeded<HeUniform>},
      {"HeNormal", {"he_normal"}, make_seeded<HeNormal>},
      {"LecunUniform", {"lecun_uniform"}, make_seeded<LecunUniform>},
      {"LecunNormal", {"lecun_normal"}, make_seeded<LecunNormal>},
      {"VarianceScaling", {"variance_scaling"}, make_variance_scaling},
      {"RandomUniform", {"random_uniform", "uniform"}, make_random_uniform},
      {"RandomNormal", {"random_normal", "normal"}, make_normal<RandomNormal>},
      {"TruncatedNormal", {"truncated_normal"}, make_normal<TruncatedNormal>},
      {"Orthogonal", {"orthogonal"}, make_orthogonal},
  };
  return all;
}

Constraint make_max_norm(FieldReader& field) {
  double max_value = 2;
  std::vector<int64_t> axis = {0};
  field("max_value", max_value);
  field.one_or_list("axis", axis);
  return keras::constraints::MaxNorm(max_value, axis);
}

Constraint make_unit_norm(FieldReader& field) {
  std::vector<int64_t> axis = {0};
  field.one_or_list("axis", axis);
  return keras::constraints::UnitNorm(axis);
}

Constraint make_min_max_norm(FieldReader& field) {
  keras::constraints::MinMaxNormOptions options;
  field("min_value", options.min_value);
  field("max_value", options.max_value);
  field("rate", options.rate);
  field.one_or_list("axis", options.axis);
  return keras::constraints::MinMaxNorm(options);
}

}  // namespace

void read_field(const Json& json, Initializer& value, const std::string& where) {
  const ClassAndConfig parts = class_and_config(json, where);
  const auto* found = find_named(initializer_classes(), parts.class_name);
  if (found == nullptr) {
    throw_unknown_name("initializer", parts.class_name, names_of(initializer_classes()), where);
  }
  value =
      read_fields(parts.config, str(where, " (", parts.class_name, ")"), [&](FieldReader& field) {
        field.find("dtype");
        return found->value(field);
      });
}

void read_field(const Json& json, Regularizer& value, const std::string& where) {
  if (json.is_null()) {
    value = {};
    return;
  }
  const ClassAndConfig parts = class_and_config(json, where);
  static const std::vector<Named<int>> classes = {
      {"L1", {"l1"}, 0}, {"L2", {"l2"}, 0}, {"L1L2", {"l1_l2"}, 0}};
  const auto* found = find_named(classes, parts.class_name);
  if (found == nullptr)
    throw_unknown_name("regularizer", parts.class_name, names_of(classes), where);
  if (parts.config.empty()) {
    value = Regularizer(found->other_names.front());
    return;
  }
  value =
      read_fields(parts.config, str(where, " (", parts.class_name, ")"), [](FieldReader& field) {
        double l1 = 0;
        double l2 = 0;
        field("l1", l1);
        field("l2", l2);
        return keras::regularizers::L1L2(l1, l2);
      });
}

void read_field(const Json& json, Constraint& value, const std::string& where) {
  if (json.is_null()) {
    value = {};
    return;
  }
  const ClassAndConfig parts = class_and_config(json, where);
  using Make = Constraint (*)(FieldReader & field);
  static const std::vector<Named<Make>> classes = {{"MaxNorm", {}, make_max_norm},
                                                   {"MinMaxNorm", {}, make_min_max_norm},
                                                   {"UnitNorm", {}, make_unit_norm}};
  if (const auto* found = find_named(classes, parts.class_name)) {
    value = read_fields(parts.config, str(where, " (", parts.class_name, ")"), found->value);
    return;
  }
  try {
    value = Constraint(parts.class_name);  // one without options, or by another of its names
  } catch (...) {
    rethrow_with_context(where);
  }
}

}  // namespace cohort::internal
