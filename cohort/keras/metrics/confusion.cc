#include "cohort/keras/metrics/confusion.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/keras/base/backend.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/keras/metrics/confusion_counts.h"
#include "cohort/keras/metrics/metric_state.h"

namespace cohort {
namespace internal {
namespace {

using Counts = Tensor ConfusionCounts::*;

// A state of one tensor for each name, [thresholds]; with one threshold the result is a scalar.
std::shared_ptr<MetricState> make_counts_state(
    std::string name, std::vector<std::string> variables, int64_t thresholds,
    std::function<Tensor(const std::vector<Tensor>&)> result) {
  return std::make_shared<MetricState>(MetricState::Options{
      .name = std::move(name),
      .variable_names = std::move(variables),
      .result =
          [thresholds, result = std::move(result)](const std::vector<Tensor>& values) {
            const Tensor all = result(values);
            return thresholds == 1 ? all.select(0, 0) : all;
          },
      .shape = {thresholds}});
}

// Adds the given counts of a batch, one for each of the state's tensors.
auto make_counts_update(const std::vector<double>& thresholds, const ConfusionSelection& selection,
                        std::vector<Counts> wanted) {
  return [thresholds = Thresholds(thresholds, keras_floatx()), selection,
          wanted = std::move(wanted)](MetricState& state, const Tensor& y_true,
                                      const Tensor& y_pred, const Tensor& sample_weight) {
    const ConfusionData data = match_confusion({y_true, y_pred, sample_weight}, selection,
                                               state.dtype(), state.name().c_str());
    const ConfusionCounts counts = count_confusion(data, thresholds);
    std::vector<Tensor> deltas;
    for (const Counts one : wanted) deltas.push_back(counts.*one);
    state.add(deltas);
  };
}

const std::vector<double>& checked(const char* metric,
                                   const keras::metrics::ConfusionCountOptions& options) {
  check_thresholds(metric, options.thresholds);
  return options.thresholds;
}

std::shared_ptr<MetricState> make_count_state(const keras::metrics::ConfusionCountOptions& options,
                                              const char* own_name) {
  return make_counts_state(with_name({options.name}, own_name).name, {"accumulator"},
                           static_cast<int64_t>(options.thresholds.size()),
                           [](const std::vector<Tensor>& values) { return values[0]; });
}

std::vector<double> thresholds_of(const char* metric,
                                  const keras::metrics::PrecisionOptions& options) {
  if (options.top_k && *options.top_k <= 0) {
    throw InvalidArgumentError(str(metric, ": top_k is ", *options.top_k, "; it must be above 0"));
  }
  if (options.thresholds.empty()) return {options.top_k ? kNeverPositive : 0.5};
  check_thresholds(metric, options.thresholds);
  return options.thresholds;
}

// The share of "true_positives" in the sum with the other count.
std::shared_ptr<MetricState> make_share_state(std::string name, const char* other,
                                              size_t thresholds) {
  return make_counts_state(std::move(name), {"true_positives", other},
                           static_cast<int64_t>(thresholds), [](const std::vector<Tensor>& values) {
                             return divide_no_nan(values[0], values[0] + values[1]);
                           });
}

keras::Config count_config(const keras::metrics::ConfusionCountOptions& options) {
  return ConfigData::config_of({{"thresholds", options.thresholds}});
}

keras::Config share_config(const keras::metrics::PrecisionOptions& options) {
  const auto number = [](const std::optional<int64_t>& n) { return n ? Json(*n) : Json(nullptr); };
  return ConfigData::config_of(
      {{"thresholds", options.thresholds.empty() ? Json(nullptr) : Json(options.thresholds)},
       {"top_k", number(options.top_k)},
       {"class_id", number(options.class_id)}});
}

}  // namespace
}  // namespace internal

namespace keras::metrics {

using internal::ConfusionCounts;

TruePositives::TruePositives(const ConfusionCountOptions& options)
    : PredictionMetric(internal::make_count_state(options, "true_positives"),
                       internal::make_counts_update(internal::checked("TruePositives", options), {},
                                                    {&ConfusionCounts::true_positives})) {
  describe("TruePositives", internal::count_config(options));
}

TrueNegatives::TrueNegatives(const ConfusionCountOptions& options)
    : PredictionMetric(internal::make_count_state(options, "true_negatives"),
                       internal::make_counts_update(internal::checked("TrueNegatives", options), {},
                                                    {&ConfusionCounts::true_negatives})) {
  describe("TrueNegatives", internal::count_config(options));
}

FalsePositives::FalsePositives(const ConfusionCountOptions& options)
    : PredictionMetric(internal::make_count_state(options, "false_positives"),
                       internal::make_counts_update(internal::checked("FalsePositives", options),
                                                    {}, {&ConfusionCounts::false_positives})) {
  describe("FalsePositives", internal::count_config(options));
}

FalseNegatives::FalseNegatives(const ConfusionCountOptions& options)
    : PredictionMetric(internal::make_count_state(options, "false_negatives"),
                       internal::make_counts_update(internal::checked("FalseNegatives", options),
                                                    {}, {&ConfusionCounts::false_negatives})) {
  describe("FalseNegatives", internal::count_config(options));
}

Precision::Precision(const PrecisionOptions& options)
    : PredictionMetric(
          internal::make_share_state(internal::with_name({options.name}, "precision").name,
                                     "false_positives",
                                     internal::thresholds_of("Precision", options).size()),
          internal::make_counts_update(
              internal::thresholds_of("Precision", options), {options.top_k, options.class_id},
              {&ConfusionCounts::true_positives, &ConfusionCounts::false_positives})) {
  describe("Precision", internal::share_config(options));
}

Recall::Recall(const RecallOptions& options)
    : PredictionMetric(
          internal::make_share_state(internal::with_name({options.name}, "recall").name,
                                     "false_negatives",
                                     internal::thresholds_of("Recall", options).size()),
          internal::make_counts_update(
              internal::thresholds_of("Recall", options), {options.top_k, options.class_id},
              {&ConfusionCounts::true_positives, &ConfusionCounts::false_negatives})) {
  describe("Recall", internal::share_config(options));
}

}  // namespace keras::metrics
}  // namespace cohort
