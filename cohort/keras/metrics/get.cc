#include "cohort/keras/metrics/get.h"

#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/named.h"
#include "cohort/keras/losses/losses.h"
#include "cohort/keras/metrics/accuracy.h"
#include "cohort/keras/metrics/auc.h"
#include "cohort/keras/metrics/best_threshold.h"
#include "cohort/keras/metrics/confusion.h"
#include "cohort/keras/metrics/custom_metric.h"
#include "cohort/keras/metrics/errors.h"
#include "cohort/keras/metrics/f_score.h"
#include "cohort/keras/metrics/iou.h"
#include "cohort/keras/metrics/r2_score.h"

namespace cohort {
namespace internal {
namespace {

using keras::metrics::PredictionMetric;
using MakeMetric = PredictionMetric (*)(const std::string& name);
constexpr MakeMetric kNeedsArguments = nullptr;

// `name` is empty where the metric's own shall stay.
template <class T, class Options = keras::metrics::MetricOptions>
PredictionMetric make_metric(const std::string& name) {
  Options options;
  if (!name.empty()) options.name = name;
  return T(options);
}

Tensor crossentropy_by_shapes(const Tensor& y_true, const Tensor& y_pred) {
  constexpr auto kNone = keras::losses::Reduction::NONE;
  static const keras::losses::BinaryCrossentropy binary({.reduction = kNone});
  static const keras::losses::SparseCategoricalCrossentropy sparse({.reduction = kNone});
  static const keras::losses::CategoricalCrossentropy categorical({.reduction = kNone});
  if (y_pred.dim() > 0 && y_pred.size(-1) == 1) return binary(y_true, y_pred);
  if (y_true.dim() < y_pred.dim() || (y_true.dim() > 0 && y_true.size(-1) == 1)) {
    return sparse(y_true, y_pred);
  }
  return categorical(y_true, y_pred);
}

// The accuracy of compile.
struct AccuracyByShapes : keras::metrics::MeanMetricWrapper {
  explicit AccuracyByShapes(const keras::metrics::MetricOptions& options)
      : MeanMetricWrapper(accuracy_by_shapes, with_name(options, "accuracy")) {
    describe("accuracy");
  }
};
struct CrossentropyByShapes : keras::metrics::MeanMetricWrapper {
  explicit CrossentropyByShapes(const keras::metrics::MetricOptions& options)
      : MeanMetricWrapper(crossentropy_by_shapes, with_name(options, "crossentropy")) {
    describe("crossentropy");
  }
};

const std::vector<Named<MakeMetric>>& all_metrics() {
  using namespace keras::metrics;
  static const std::vector<Named<MakeMetric>> all = {
      {"Accuracy", {}, make_metric<Accuracy>},
      {"AUC", {"auc"}, make_metric<AUC, AUCOptions>},
      {"BinaryAccuracy", {"binary_accuracy"}, make_metric<BinaryAccuracy, BinaryAccuracyOptions>},
      {"BinaryCrossentropy",
       {"binary_crossentropy", "bce", "BCE"},
       make_metric<BinaryCrossentropy, CrossentropyOptions>},
      {"BinaryIoU", {"binary_io_u"}, make_metric<BinaryIoU, BinaryIoUOptions>},
      {"CategoricalAccuracy", {"categorical_accuracy"}, make_metric<CategoricalAccuracy>},
      {"CategoricalCrossentropy",
       {"categorical_crossentropy"},
       make_metric<CategoricalCrossentropy, CrossentropyOptions>},
      {"CategoricalHinge", {"categorical_hinge"}, make_metric<CategoricalHinge>},
      {"CosineSimilarity",
       {"cosine_similarity"},
       make_metric<CosineSimilarity, CosineSimilarityOptions>},
      {"F1Score", {}, make_metric<F1Score, F1ScoreOptions>},
      {"FBetaScore", {}, make_metric<FBetaScore, FBetaScoreOptions>},
      {"FalseNegatives", {"false_negatives"}, make_metric<FalseNegatives, ConfusionCountOptions>},
      {"FalsePositives", {"false_positives"}, make_metric<FalsePositives, ConfusionCountOptions>},
      {"Hinge", {"hinge"}, make_metric<Hinge>},
      {"IoU", {}, kNeedsArguments},
      {"KLDivergence",
       {"kl_divergence", "kullback_leibler_divergence", "kld", "KLD"},
       make_metric<KLDivergence>},
      {"LogCoshError", {"log_cosh", "logcosh"}, make_metric<LogCoshError>},
      {"MeanAbsoluteError", {"mean_absolute_error", "mae", "MAE"}, make_metric<MeanAbsoluteError>},
      {"MeanAbsolutePercentageError",
       {"mean_absolute_percentage_error", "mape", "MAPE"},
       make_metric<MeanAbsolutePercentageError>},
      {"MeanIoU", {}, kNeedsArguments},
      {"MeanRelativeError", {}, kNeedsArguments},
      {"MeanSquaredError", {"mean_squared_error", "mse", "MSE"}, make_metric<MeanSquaredError>},
      {"MeanSquaredLogarithmicError",
       {"mean_squared_logarithmic_error", "msle", "MSLE"},
       make_metric<MeanSquaredLogarithmicError>},
      {"OneHotIoU", {}, kNeedsArguments},
      {"OneHotMeanIoU", {}, kNeedsArguments},
      {"Poisson", {"poisson"}, make_metric<Poisson>},
      {"Precision", {"precision"}, make_metric<Precision, PrecisionOptions>},
      {"PrecisionAtRecall", {}, kNeedsArguments},
      {"R2Score", {}, make_metric<R2Score, R2ScoreOptions>},
      {"Recall", {"recall"}, make_metric<Recall, RecallOptions>},
      {"RecallAtPrecision", {}, kNeedsArguments},
      {"RootMeanSquaredError", {"root_mean_squared_error"}, make_metric<RootMeanSquaredError>},
      {"SensitivityAtSpecificity", {}, kNeedsArguments},
      {"SparseCategoricalAccuracy",
       {"sparse_categorical_accuracy"},
       make_metric<SparseCategoricalAccuracy>},
      {"SparseCategoricalCrossentropy",
       {"sparse_categorical_crossentropy"},
       make_metric<SparseCategoricalCrossentropy, SparseCrossentropyOptions>},
      {"SpecificityAtSensitivity", {}, kNeedsArguments},
      {"SparseTopKCategoricalAccuracy",
       {"sparse_top_k_categorical_accuracy"},
       make_metric<SparseTopKCategoricalAccuracy, TopKOptions>},
      {"SquaredHinge", {"squared_hinge"}, make_metric<SquaredHinge>},
      {"TopKCategoricalAccuracy",
       {"top_k_categorical_accuracy"},
       make_metric<TopKCategoricalAccuracy, TopKOptions>},
      {"TrueNegatives", {"true_negatives"}, make_metric<TrueNegatives, ConfusionCountOptions>},
      {"TruePositives", {"true_positives"}, make_metric<TruePositives, ConfusionCountOptions>},
      {"accuracy", {"acc"}, make_metric<AccuracyByShapes>},
      {"crossentropy", {"ce"}, make_metric<CrossentropyByShapes>},
  };
  return all;
}

const Named<MakeMetric>& find_metric(std::string_view name) {
  const auto* found = find_named(all_metrics(), name);
  if (found != nullptr && found->value == kNeedsArguments) {
    throw InvalidArgumentError(
        str("the metric ", quoted(name),
            " needs arguments, which its name does not say: give the object, "
            "metrics::",
            name, "(...)"));
  }
  if (found != nullptr) return *found;
  throw_unknown_name("metric", name, names_of(all_metrics()));
}

}  // namespace

void check_metric_name(std::string_view name) { find_metric(name); }

keras::metrics::PredictionMetric metric_of_name(std::string_view name) {
  const Named<MakeMetric>& found = find_metric(name);
  const bool by_class = found.class_name == name && is_upper(name[0]);
  return found.value(by_class ? std::string() : std::string(name));
}

}  // namespace internal

namespace keras::metrics {

PredictionMetric get(std::string_view name) { return internal::metric_of_name(name); }

}  // namespace keras::metrics
}  // namespace cohort
