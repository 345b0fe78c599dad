#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/fields.h"
#include "cohort/keras/base/named.h"
#include "cohort/keras/losses/losses.h"
#include "cohort/keras/saving/compile_config.h"

namespace cohort::internal {
namespace {

using keras::losses::Loss;
using keras::losses::Reduction;

Reduction reduction_of(const std::string& name) {
  if (name == "auto") return Reduction::AUTO;
  if (name == "none") return Reduction::NONE;
  if (name == "sum") return Reduction::SUM;
  if (name == "sum_over_batch_size") return Reduction::SUM_OVER_BATCH_SIZE;
  throw InvalidArgumentError(str("no reduction is called ", quoted(name)));
}

void read_alpha(FieldReader& field, double& alpha) { field("alpha", alpha); }
void read_alpha(FieldReader& field, keras::losses::FocalAlpha& alpha) {
  const Json* const found = field.find("alpha");
  if (found == nullptr) return;
  if (found->is_array()) {
    std::vector<double> of_each;
    field("alpha", of_each);
    alpha = of_each;
  } else {
    double of_all = 0;
    field("alpha", of_all);
    alpha = of_all;
  }
}

template <class Class, class Options = keras::losses::LossOptions>
Loss make_read_loss(FieldReader& field) {
  Options options;
  field("name", options.name);
  std::string reduction = "auto";
  field("reduction", reduction);
  options.reduction = reduction_of(reduction);
  field.without_effect("fn", nullptr);
  if constexpr (requires { options.from_logits; }) field("from_logits", options.from_logits);
  if constexpr (requires { options.label_smoothing; }) {
    field("label_smoothing", options.label_smoothing);
  }
  if constexpr (requires { options.ignore_class; }) field("ignore_class", options.ignore_class);
  if constexpr (requires { options.apply_class_balancing; }) {
    field("apply_class_balancing", options.apply_class_balancing);
  }
  if constexpr (requires { options.alpha; }) read_alpha(field, options.alpha);
  if constexpr (requires { options.gamma; }) field("gamma", options.gamma);
  if constexpr (requires { options.delta; }) field("delta", options.delta);
  if constexpr (requires { options.axis; }) {
    field("axis", options.axis);
  } else {
    field.always("axis", -1);
  }
  return Class(options);
}

const std::vector<Named<Loss (*)(FieldReader&)>>& loss_classes() {
  using namespace keras::losses;
  static const std::vector<Named<Loss (*)(FieldReader&)>> all = {
      {"BinaryCrossentropy", {}, make_read_loss<BinaryCrossentropy, BinaryCrossentropyOptions>},
      {"BinaryFocalCrossentropy",
       {},
       make_read_loss<BinaryFocalCrossentropy, BinaryFocalCrossentropyOptions>},
      {"CategoricalCrossentropy",
       {},
       make_read_loss<CategoricalCrossentropy, CategoricalCrossentropyOptions>},
      {"CategoricalFocalCrossentropy",
       {},
       make_read_loss<CategoricalFocalCrossentropy, CategoricalFocalCrossentropyOptions>},
      {"CategoricalHinge", {}, make_read_loss<CategoricalHinge>},
      {"CosineSimilarity", {}, make_read_loss<CosineSimilarity, CosineSimilarityOptions>},
      {"Hinge", {}, make_read_loss<Hinge>},
      {"Huber", {}, make_read_loss<Huber, HuberOptions>},
      {"KLDivergence", {}, make_read_loss<KLDivergence>},
      {"LogCosh", {}, make_read_loss<LogCosh>},
      {"MeanAbsoluteError", {}, make_read_loss<MeanAbsoluteError>},
      {"MeanAbsolutePercentageError", {}, make_read_loss<MeanAbsolutePercentageError>},
      {"MeanSquaredError", {}, make_read_loss<MeanSquaredError>},
      {"MeanSquaredLogarithmicError", {}, make_read_loss<MeanSquaredLogarithmicError>},
      {"Poisson", {}, make_read_loss<Poisson>},
      {"SparseCategoricalCrossentropy",
       {},
       make_read_loss<SparseCategoricalCrossentropy, SparseCategoricalCrossentropyOptions>},
      {"SquaredHinge", {}, make_read_loss<SquaredHinge>},
  };
  return all;
}

}  // namespace

keras::LossArgument read_loss(const Json& json, const std::string& where) {
  if (json.is_string()) return json.get<std::string>();
  const ClassAndConfig parts = class_and_config(json, where);
  const auto* found = find_named(loss_classes(), parts.class_name);
  if (found == nullptr) {
    // Functions of Keras have their name alone.
    if (parts.config.empty()) return parts.class_name;
    throw_unknown_name("loss", parts.class_name, names_of(loss_classes()), where);
  }
  return read_fields(parts.config, str(where, " (", parts.class_name, ")"), found->value);
}

}  // namespace cohort::internal
