#include "cohort/keras/metrics/best_threshold.h"

#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/backend.h"
#include "cohort/keras/metrics/confusion_counts.h"
#include "cohort/keras/metrics/metric_state.h"

namespace cohort {
namespace internal {
namespace {

using keras::metrics::BestThresholdOptions;

// A share of the counts at each threshold.
using Share = Tensor (*)(const ConfusionCounts&);
Tensor sensitivity(const ConfusionCounts& counts) {
  return divide_no_nan(counts.true_positives, counts.true_positives + counts.false_negatives);
}
Tensor specificity(const ConfusionCounts& counts) {
  return divide_no_nan(counts.true_negatives, counts.true_negatives + counts.false_positives);
}
Tensor precision(const ConfusionCounts& counts) {
  return divide_no_nan(counts.true_positives, counts.true_positives + counts.false_positives);
}

// `best` where `constrained` is `least` or more.
struct BestThreshold {
  const char* metric;
  const char* own_name;
  const char* constraint;  // of the constructor
  Share constrained;
  Share best;
};
constexpr BestThreshold kSensitivityAtSpecificity{"SensitivityAtSpecificity",
                                                  "sensitivity_at_specificity", "specificity",
                                                  specificity, sensitivity};
constexpr BestThreshold kSpecificityAtSensitivity{"SpecificityAtSensitivity",
                                                  "specificity_at_sensitivity", "sensitivity",
                                                  sensitivity, specificity};
constexpr BestThreshold kPrecisionAtRecall{"PrecisionAtRecall", "precision_at_recall", "recall",
                                           sensitivity, precision};
constexpr BestThreshold kRecallAtPrecision{"RecallAtPrecision", "recall_at_precision", "precision",
                                           precision, sensitivity};

std::vector<double> even_thresholds(const char* metric, int64_t count) {
  check_not_too_many(metric, "num_thresholds", count);
  if (count == 1) return {0.5};
  std::vector<double> thresholds;
  for (int64_t i = 0; i < count; ++i) {
    thresholds.push_back(static_cast<double>(i) / static_cast<double>(count - 1));
  }
  return thresholds;
}

std::shared_ptr<MetricState> make_best_state(const BestThreshold& kind, double least,
                                             const BestThresholdOptions& options) {
  if (!(least >= 0 && least <= 1)) {
    throw InvalidArgumentError(
        str(kind.metric, ": ", kind.constraint, " is ", least, "; it must lie in [0, 1]"));
  }
  if (options.num_thresholds < 1) {
    throw InvalidArgumentError(
        str(kind.metric, ": num_thresholds is ", options.num_thresholds, "; it must be above 0"));
  }
  return std::make_shared<MetricState>(MetricState::Options{
      .name = options.name.empty() ? kind.own_name : options.name,
      .variable_names = {"true_positives", "true_negatives", "false_positives", "false_negatives"},
      .result =
          [kind, least](const std::vector<Tensor>& values) {
            const ConfusionCounts counts{values[0], values[1], values[2], values[3]};
            const Tensor best = kind.best(counts);
            return at::where(kind.constrained(counts).ge(least), best, at::zeros_like(best)).max();
          },
      .shape = {options.num_thresholds}});
}

auto make_best_update(const BestThreshold& kind, const BestThresholdOptions& options) {
  return [thresholds =
              Thresholds(even_thresholds(kind.metric, options.num_thresholds), keras_floatx()),
          class_id = options.class_id](MetricState& state, const Tensor& y_true,
                                       const Tensor& y_pred, const Tensor& sample_weight) {
    ConfusionData data = match_confusion({y_true, y_pred, sample_weight}, {.class_id = class_id},
                                         state.dtype(), state.name().c_str());
    data.predictions = data.predictions.clamp(0, 1);
    const ConfusionCounts counts = count_confusion(data, thresholds);
    state.add({counts.true_positives, counts.true_negatives, counts.false_positives,
               counts.false_negatives});
  };
}

// Keras's own lacks the class, which its constructors take all the same.
keras::Config best_config(const BestThreshold& kind, double least,
                          const BestThresholdOptions& options) {
  keras::Config config;
  config.set("num_thresholds", options.num_thresholds).set(kind.constraint, least);
  if (options.class_id) config.set("class_id", *options.class_id);
  return config;
}

}  // namespace
}  // namespace internal

namespace keras::metrics {

SensitivityAtSpecificity::SensitivityAtSpecificity(double specificity,
                                                   const BestThresholdOptions& options)
    : PredictionMetric(
          internal::make_best_state(internal::kSensitivityAtSpecificity, specificity, options),
          internal::make_best_update(internal::kSensitivityAtSpecificity, options)) {
  describe("SensitivityAtSpecificity",
           internal::best_config(internal::kSensitivityAtSpecificity, specificity, options));
}

SpecificityAtSensitivity::SpecificityAtSensitivity(double sensitivity,
                                                   const BestThresholdOptions& options)
    : PredictionMetric(
          internal::make_best_state(internal::kSpecificityAtSensitivity, sensitivity, options),
          internal::make_best_update(internal::kSpecificityAtSensitivity, options)) {
  describe("SpecificityAtSensitivity",
           internal::best_config(internal::kSpecificityAtSensitivity, sensitivity, options));
}

PrecisionAtRecall::PrecisionAtRecall(double recall, const BestThresholdOptions& options)
    : PredictionMetric(internal::make_best_state(internal::kPrecisionAtRecall, recall, options),
                       internal::make_best_update(internal::kPrecisionAtRecall, options)) {
  describe("PrecisionAtRecall",
           internal::best_config(internal::kPrecisionAtRecall, recall, options));
}

RecallAtPrecision::RecallAtPrecision(double precision, const BestThresholdOptions& options)
    : PredictionMetric(internal::make_best_state(internal::kRecallAtPrecision, precision, options),
                       internal::make_best_update(internal::kRecallAtPrecision, options)) {
  describe("RecallAtPrecision",
           internal::best_config(internal::kRecallAtPrecision, precision, options));
}

}  // namespace keras::metrics
}  // namespace cohort
