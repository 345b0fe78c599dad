#include <optional>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/fields.h"
#include "cohort/keras/base/named.h"
#include "cohort/keras/metrics/get.h"
#include "cohort/keras/metrics/metrics.h"
#include "cohort/keras/saving/compile_config.h"

namespace cohort::internal {
namespace {

using keras::metrics::Curve;
using keras::metrics::PredictionMetric;
using keras::metrics::SummationMethod;

template <class Class, class Options = keras::metrics::MetricOptions>
PredictionMetric make_read_metric(FieldReader& field) {
  Options options;
  field("name", options.name);
  field.without_effect("dtype", nullptr);
  if constexpr (requires { options.from_logits; }) field("from_logits", options.from_logits);
  if constexpr (requires { options.label_smoothing; }) {
    field("label_smoothing", options.label_smoothing);
  }
  if constexpr (requires { options.axis; }) {
    field("axis", options.axis);
  } else {
    field.always("axis", -1);
  }
  if constexpr (requires { options.num_classes; }) field("num_classes", options.num_classes);
  if constexpr (requires { options.target_class_ids; }) {
    field("target_class_ids", options.target_class_ids);
  }
  if constexpr (requires { options.ignore_class; }) field("ignore_class", options.ignore_class);
  if constexpr (requires { options.sparse_y_true; }) field("sparse_y_true", options.sparse_y_true);
  if constexpr (requires { options.sparse_y_pred; }) field("sparse_y_pred", options.sparse_y_pred);
  if constexpr (requires { options.threshold; }) field("threshold", options.threshold);
  if constexpr (requires { options.k; }) field("k", options.k);
  if constexpr (requires { options.average; }) field("average", options.average);
  if constexpr (requires { options.beta; }) field("beta", options.beta);
  if constexpr (requires { options.class_aggregation; }) {
    field("class_aggregation", options.class_aggregation);
    field("num_regressors", options.num_regressors);
    field("num_outputs", options.num_outputs);
  }
  if constexpr (requires { options.top_k; }) {
    field("top_k", options.top_k);
    field("class_id", options.class_id);
  }
  if constexpr (requires { options.thresholds; }) {
    const Json* thresholds = field.find("thresholds");
    if (thresholds != nullptr && thresholds->is_number()) {
      options.thresholds = {thresholds->get<double>()};
    } else if (thresholds != nullptr && !thresholds->is_null()) {
      field("thresholds", options.thresholds);
    }
  }
  return Class(options);
}

PredictionMetric make_read_auc(FieldReader& field) {
  keras::metrics::AUCOptions options;
  field("name", options.name);
  field.without_effect("dtype", nullptr);
  field("num_thresholds", options.num_thresholds);
  std::string curve = "ROC";
  field("curve", curve);
  if (curve != "ROC" && curve != "PR") {
    throw InvalidArgumentError(str(quoted("curve"), " is ", quoted(curve), ", not ROC or PR"));
  }
  options.curve = curve == "PR" ? Curve::PR : Curve::ROC;
  std::string summation = "interpolation";
  field("summation_method", summation);
  if (summation == "minoring") {
    options.summation_method = SummationMethod::MINORING;
  } else if (summation == "majoring") {
    options.summation_method = SummationMethod::MAJORING;
  } else if (summation != "interpolation") {
    throw InvalidArgumentError(str(quoted("summation_method"), " is ", quoted(summation)));
  }
  field("from_logits", options.from_logits);
  std::optional<std::vector<double>> thresholds;
  std::optional<std::vector<double>> label_weights;
  std::optional<int64_t> num_labels;
  field("thresholds", thresholds);
  field("label_weights", label_weights);
  field("num_labels", num_labels);
  bool multi_label = false;
  field("multi_label", multi_label);
  // Keras adds thresholds below 0 and above 1; they are added here, too.
  if (thresholds) {
    for (const double threshold : *thresholds) {
      if (threshold >= 0 && threshold <= 1) options.thresholds.push_back(threshold);
    }
  }
  if (label_weights) options.label_weights = *label_weights;
  if (multi_label) options.num_labels = num_labels.value_or(0);
  return keras::metrics::AUC(options);
}

// The number that a field must have. Errors: InvalidArgument (it is missing).
double required_number(FieldReader& field, const char* key) {
  std::optional<double> number;
  field(key, number);
  if (!number) throw InvalidArgumentError(str(quoted(key), " is missing"));
  return *number;
}

PredictionMetric make_read_relative_error(FieldReader& field) {
  keras::metrics::MetricOptions options;
  field("name", options.name);
  field.without_effect("dtype", nullptr);
  Tensor normalizer;
  if (const Json* found = field.find("normalizer")) {
    // A list, or an array or tensor as Keras packs them.
    const bool packed = found->is_object();
    const std::string where = quoted("normalizer");
    read_field(packed ? member_of(member_of(*found, "config", where), "value", where) : *found,
               normalizer, where);
  }
  return keras::metrics::MeanRelativeError(normalizer, options);
}

template <class Class>
PredictionMetric make_read_best(FieldReader& field, const char* constraint) {
  keras::metrics::BestThresholdOptions options;
  field("name", options.name);
  field.without_effect("dtype", nullptr);
  field("num_thresholds", options.num_thresholds);
  field("class_id", options.class_id);
  return Class(required_number(field, constraint), options);
}

template <class Class>
Named<PredictionMetric (*)(FieldReader&)> simple_metric(std::string_view name) {
  return {name, {}, make_read_metric<Class>};
}

const std::vector<Named<PredictionMetric (*)(FieldReader&)>>& metric_classes() {
  using namespace keras::metrics;
  static const std::vector<Named<PredictionMetric (*)(FieldReader&)>> all = {
      simple_metric<Accuracy>("Accuracy"),
      {"AUC", {}, make_read_auc},
      {"BinaryAccuracy", {}, make_read_metric<BinaryAccuracy, BinaryAccuracyOptions>},
      {"BinaryCrossentropy", {}, make_read_metric<BinaryCrossentropy, CrossentropyOptions>},
      {"BinaryIoU", {}, make_read_metric<BinaryIoU, BinaryIoUOptions>},
      simple_metric<CategoricalAccuracy>("CategoricalAccuracy"),
      {"CategoricalCrossentropy",
       {},
       make_read_metric<CategoricalCrossentropy, CrossentropyOptions>},
      simple_metric<CategoricalHinge>("CategoricalHinge"),
      {"CosineSimilarity", {}, make_read_metric<CosineSimilarity, CosineSimilarityOptions>},
      {"F1Score", {}, make_read_metric<F1Score, F1ScoreOptions>},
      {"FBetaScore", {}, make_read_metric<FBetaScore, FBetaScoreOptions>},
      {"FalseNegatives", {}, make_read_metric<FalseNegatives, ConfusionCountOptions>},
      {"FalsePositives", {}, make_read_metric<FalsePositives, ConfusionCountOptions>},
      simple_metric<Hinge>("Hinge"),
      {"IoU", {}, make_read_metric<IoU, IoUOptions>},
      simple_metric<KLDivergence>("KLDivergence"),
      simple_metric<LogCoshError>("LogCoshError"),
      simple_metric<MeanAbsoluteError>("MeanAbsoluteError"),
      simple_metric<MeanAbsolutePercentageError>("MeanAbsolutePercentageError"),
      {"MeanIoU", {}, make_read_metric<MeanIoU, MeanIoUOptions>},
      {"MeanRelativeError", {}, make_read_relative_error},
      simple_metric<MeanSquaredError>("MeanSquaredError"),
      simple_metric<MeanSquaredLogarithmicError>("MeanSquaredLogarithmicError"),
      {"OneHotIoU", {}, make_read_metric<OneHotIoU, OneHotIoUOptions>},
      {"OneHotMeanIoU", {}, make_read_metric<OneHotMeanIoU, OneHotMeanIoUOptions>},
      simple_metric<Poisson>("Poisson"),
      {"Precision", {}, make_read_metric<Precision, PrecisionOptions>},
      {"PrecisionAtRecall",
       {},
       [](FieldReader& field) { return make_read_best<PrecisionAtRecall>(field, "recall"); }},
      {"R2Score", {}, make_read_metric<R2Score, R2ScoreOptions>},
      {"Recall", {}, make_read_metric<Recall, RecallOptions>},
      {"RecallAtPrecision",
       {},
       [](FieldReader& field) { return make_read_best<RecallAtPrecision>(field, "precision"); }},
      simple_metric<RootMeanSquaredError>("RootMeanSquaredError"),
      {"SensitivityAtSpecificity",
       {},
       [](FieldReader& field) {
         return make_read_best<SensitivityAtSpecificity>(field, "specificity");
       }},
      simple_metric<SparseCategoricalAccuracy>("SparseCategoricalAccuracy"),
      {"SparseCategoricalCrossentropy",
       {},
       make_read_metric<SparseCategoricalCrossentropy, SparseCrossentropyOptions>},
      {"SpecificityAtSensitivity",
       {},
       [](FieldReader& field) {
         return make_read_best<SpecificityAtSensitivity>(field, "sensitivity");
       }},
      {"SparseTopKCategoricalAccuracy",
       {},
       make_read_metric<SparseTopKCategoricalAccuracy, TopKOptions>},
      simple_metric<SquaredHinge>("SquaredHinge"),
      {"TopKCategoricalAccuracy", {}, make_read_metric<TopKCategoricalAccuracy, TopKOptions>},
      {"TrueNegatives", {}, make_read_metric<TrueNegatives, ConfusionCountOptions>},
      {"TruePositives", {}, make_read_metric<TruePositives, ConfusionCountOptions>},
  };
  return all;
}

}  // namespace

keras::MetricArgument read_metric(const Json& json, const std::string& where) {
  if (json.is_string()) return json.get<std::string>();
  const ClassAndConfig parts = class_and_config(json, where);
  const auto* found = find_named(metric_classes(), parts.class_name);
  if (found == nullptr) {
    // "accuracy", and functions of Keras, which have their name alone.
    check_metric_name(parts.class_name);
    return parts.class_name;
  }
  return read_fields(parts.config, str(where, " (", parts.class_name, ")"), found->value);
}

}  // namespace cohort::internal
