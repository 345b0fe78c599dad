#include <cohort/cohort.h>

#include <optional>
#include <string>
#include <vector>

#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

using keras::losses::Loss;
using keras::losses::Reduction;
using keras::metrics::PredictionMetric;

Reduction reduction_of(const std::string& name) {
  if (name == "none") return Reduction::NONE;
  if (name == "sum") return Reduction::SUM;
  if (name == "sum_over_batch_size") return Reduction::SUM_OVER_BATCH_SIZE;
  throw InvalidArgumentError("no reduction '" + name + "'");
}

template <class T>
std::optional<T> maybe(const Json& options, const char* key) {
  if (!options.contains(key) || options.at(key).is_null()) return std::nullopt;
  return options.at(key).get<T>();
}

// Those with options of their own; the others are found by name.
Loss make_loss(const std::string& name, const Json& options) {
  const Reduction reduction = reduction_of(options.at("reduction"));
  const bool from_logits = options.value("from_logits", false);
  const double label_smoothing = options.value("label_smoothing", 0.0);
  const int64_t axis = options.value("axis", -1);
  if (name == "SparseCategoricalCrossentropy") {
    return keras::losses::SparseCategoricalCrossentropy(
        {.from_logits = from_logits,
         .ignore_class = maybe<int64_t>(options, "ignore_class"),
         .reduction = reduction});
  }
  if (name == "BinaryFocalCrossentropy") {
    return keras::losses::BinaryFocalCrossentropy(
        {.apply_class_balancing = options.value("apply_class_balancing", false),
         .alpha = options.value("alpha", 0.25),
         .gamma = options.value("gamma", 2.0),
         .from_logits = from_logits,
         .label_smoothing = label_smoothing,
         .axis = axis,
         .reduction = reduction});
  }
  if (name == "CategoricalFocalCrossentropy") {
    const Json alpha = options.value("alpha", Json(0.25));
    return keras::losses::CategoricalFocalCrossentropy(
        {.alpha = alpha.is_array() ? keras::losses::FocalAlpha(alpha.get<std::vector<double>>())
                                   : keras::losses::FocalAlpha(alpha.get<double>()),
         .gamma = options.value("gamma", 2.0),
         .from_logits = from_logits,
         .label_smoothing = label_smoothing,
         .axis = axis,
         .reduction = reduction});
  }
  if (name == "BinaryCrossentropy") {
    return keras::losses::BinaryCrossentropy(
        {.from_logits = from_logits, .label_smoothing = label_smoothing, .reduction = reduction});
  }
  if (name == "CategoricalCrossentropy") {
    return keras::losses::CategoricalCrossentropy({.from_logits = from_logits,
                                                   .label_smoothing = label_smoothing,
                                                   .axis = axis,
                                                   .reduction = reduction});
  }
  if (name == "Huber") {
    return keras::losses::Huber({.delta = options.value("delta", 1.0), .reduction = reduction});
  }
  if (name == "CosineSimilarity") {
    return keras::losses::CosineSimilarity({.axis = axis, .reduction = reduction});
  }
  return keras::losses::get(name, {.reduction = reduction});
}

std::vector<double> numbers(const Json& options, const char* key,
                            const std::vector<double>& otherwise = {}) {
  return maybe<std::vector<double>>(options, key).value_or(otherwise);
}

PredictionMetric make_auc(const Json& options) {
  using namespace keras::metrics;
  const std::string summation = options.value("summation_method", "interpolation");
  return AUC({.num_thresholds = options.value("num_thresholds", int64_t{200}),
              .curve = options.value("curve", "ROC") == "PR" ? Curve::PR : Curve::ROC,
              .summation_method = summation == "minoring"   ? SummationMethod::MINORING
                                  : summation == "majoring" ? SummationMethod::MAJORING
                                                            : SummationMethod::INTERPOLATION,
              .thresholds = numbers(options, "thresholds"),
              .num_labels = options.value("num_labels", int64_t{0}),
              .label_weights = numbers(options, "label_weights"),
              .from_logits = options.value("from_logits", false)});
}

// Those of the constructor's first argument, and IoU's; nothing of others.
std::optional<PredictionMetric> make_metric_of_arguments(const std::string& name,
                                                         const Json& options) {
  using namespace keras::metrics;
  const BestThresholdOptions best{.num_thresholds = options.value("num_thresholds", int64_t{200}),
                                  .class_id = maybe<int64_t>(options, "class_id")};
  if (name == "SensitivityAtSpecificity") {
    return SensitivityAtSpecificity(options.at("specificity"), best);
  }
  if (name == "SpecificityAtSensitivity") {
    return SpecificityAtSensitivity(options.at("sensitivity"), best);
  }
  if (name == "PrecisionAtRecall") return PrecisionAtRecall(options.at("recall"), best);
  if (name == "RecallAtPrecision") return RecallAtPrecision(options.at("precision"), best);
  if (name == "MeanRelativeError") {
    return MeanRelativeError(tensor_of(options.at("normalizer")));
  }
  const auto num_classes = options.value("num_classes", int64_t{0});
  const auto ids = maybe<std::vector<int64_t>>(options, "target_class_ids");
  const auto ignored = maybe<int64_t>(options, "ignore_class");
  if (name == "MeanIoU") {
    return MeanIoU({.num_classes = num_classes,
                    .ignore_class = ignored,
                    .sparse_y_true = options.value("sparse_y_true", true),
                    .sparse_y_pred = options.value("sparse_y_pred", true)});
  }
  if (name == "IoU") {
    return IoU({.num_classes = num_classes, .target_class_ids = *ids, .ignore_class = ignored});
  }
  if (name == "OneHotMeanIoU") return OneHotMeanIoU({.num_classes = num_classes});
  if (name == "OneHotIoU") {
    return OneHotIoU({.num_classes = num_classes, .target_class_ids = *ids});
  }
  if (name == "F1Score") {
    return F1Score({.average = maybe<std::string>(options, "average"),
                    .threshold = maybe<double>(options, "threshold")});
  }
  if (name == "FBetaScore") {
    return FBetaScore({.average = maybe<std::string>(options, "average"),
                       .beta = options.value("beta", 1.0),
                       .threshold = maybe<double>(options, "threshold")});
  }
  if (name == "R2Score") {
    R2ScoreOptions r2{.num_regressors = options.value("num_regressors", int64_t{0})};
    if (options.contains("class_aggregation")) {
      r2.class_aggregation = maybe<std::string>(options, "class_aggregation");
    }
    return R2Score(r2);
  }
  if (name == "SparseCategoricalCrossentropy" && options.contains("ignore_class")) {
    return SparseCategoricalCrossentropy(
        {.from_logits = options.value("from_logits", false), .ignore_class = ignored});
  }
  if (name == "BinaryIoU") {
    return BinaryIoU({.target_class_ids = ids.value_or(std::vector<int64_t>{0, 1}),
                      .threshold = options.value("threshold", 0.5)});
  }
  return std::nullopt;
}

// As make_loss.
PredictionMetric make_metric(const std::string& name, const Json& options) {
  using namespace keras::metrics;
  const ConfusionCountOptions count{.thresholds = numbers(options, "thresholds", {0.5})};
  if (name == "TruePositives") return TruePositives(count);
  if (name == "TrueNegatives") return TrueNegatives(count);
  if (name == "FalsePositives") return FalsePositives(count);
  if (name == "FalseNegatives") return FalseNegatives(count);
  const PrecisionOptions precision{.thresholds = numbers(options, "thresholds"),
                                   .top_k = maybe<int64_t>(options, "top_k"),
                                   .class_id = maybe<int64_t>(options, "class_id")};
  if (name == "Precision") return Precision(precision);
  if (name == "Recall") return Recall(precision);
  if (name == "AUC") return make_auc(options);
  if (const auto metric = make_metric_of_arguments(name, options)) return *metric;
  const TopKOptions top_k{.k = options.value("k", int64_t{5})};
  if (name == "TopKCategoricalAccuracy") return TopKCategoricalAccuracy(top_k);
  if (name == "SparseTopKCategoricalAccuracy") return SparseTopKCategoricalAccuracy(top_k);
  if (name == "BinaryAccuracy") {
    return BinaryAccuracy({.threshold = options.value("threshold", 0.5)});
  }
  return keras::metrics::get(name);
}

template <class ValueMetric>
Json update_values(const ValueMetric& metric, const Json& updates) {
  for (const Json& update : updates) {
    metric.update_state(tensor_of(update.at("values")), tensor_of(update.at("sample_weight")));
  }
  return json_of(metric.result());
}

}  // namespace

Json compute_loss(const Json& request) {
  const Loss loss = make_loss(request.at("loss"), request.at("options"));
  const Tensor predictions = tensor_of(request.at("predictions"));
  GradientTape tape;
  tape.watch(predictions);
  const Tensor value =
      loss(tensor_of(request.at("labels")), predictions, tensor_of(request.at("sample_weight")));
  Json answer = json_of(value);
  answer["gradient"] = json_of(tape.gradient(value, predictions));
  return answer;
}

Json compute_average_loss(const Json& request) {
  nn::AverageLossOptions options{.sample_weight = tensor_of(request.at("sample_weight"))};
  if (!request.at("global_batch").is_null()) {
    options.global_batch_size = request.at("global_batch").get<int64_t>();
  }
  return json_of(nn::compute_average_loss(tensor_of(request.at("per_example_loss")), options));
}

Json compute_metric(const Json& request) {
  const std::string name = request.at("metric");
  const Json& updates = request.at("updates");
  if (name == "Mean") return update_values(keras::metrics::Mean(), updates);
  if (name == "Sum") return update_values(keras::metrics::Sum(), updates);
  if (name == "MeanTensor") {
    return update_values(
        keras::metrics::MeanTensor(tensor_of(updates.at(0).at("values")).sizes().vec()), updates);
  }
  const PredictionMetric metric = make_metric(name, request.value("options", Json::object()));
  for (const Json& update : updates) {
    metric.update_state(tensor_of(update.at("labels")), tensor_of(update.at("predictions")),
                        tensor_of(update.at("sample_weight")));
  }
  return json_of(metric.result());
}

}  // namespace cohort::interop
