#include "cohort/keras/metrics/auc.h"

#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/recording/host_constant.h"
#include "cohort/keras/base/backend.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/keras/base/weighting.h"
#include "cohort/keras/metrics/confusion_counts.h"
#include "cohort/keras/metrics/metric_state.h"

namespace cohort {
namespace internal {
namespace {

using keras::metrics::AUCOptions;
using keras::metrics::Curve;
using keras::metrics::SummationMethod;

// Rows [0, n - 1) and [1, n) of counts that belong to n ascending thresholds.
Tensor low(const Tensor& x) { return x.slice(0, 0, -1); }
Tensor high(const Tensor& x) { return x.slice(0, 1); }

// Precision between two thresholds is (tp_high + slope * (p - p_high)) / p, where p, the number of
// positive predictions, grows evenly. Its integral over recall is
// slope * (dtp + intercept * log(p_low / p_high)) / positives.
Tensor interpolated_precision(const ConfusionCounts& counts) {
  const Tensor& tp = counts.true_positives;
  const Tensor p = tp + counts.false_positives;
  const Tensor dtp = low(tp) - high(tp);
  const Tensor slope = divide_no_nan(dtp, (low(p) - high(p)).clamp_min(0));
  const Tensor intercept = high(tp) - slope * high(p);
  const Tensor ratio = at::where(low(p).gt(0).logical_and(high(p).gt(0)),
                                 divide_no_nan(low(p), high(p)), at::ones_like(high(p)));
  return divide_no_nan(slope * (dtp + intercept * ratio.log()),
                       high(tp) + high(counts.false_negatives))
      .sum(0);
}

Tensor area(const ConfusionCounts& counts, const AUCOptions& options) {
  const bool pr = options.curve == Curve::PR;
  if (pr && options.summation_method == SummationMethod::INTERPOLATION) {
    return interpolated_precision(counts);
  }
  const auto share = [](const Tensor& part, const Tensor& rest) {
    return divide_no_nan(part, part + rest);
  };
  const Tensor recall = share(counts.true_positives, counts.false_negatives);
  const Tensor x = pr ? recall : share(counts.false_positives, counts.true_negatives);
  const Tensor y = pr ? share(counts.true_positives, counts.false_positives) : recall;
  Tensor heights;
  switch (options.summation_method) {
    case SummationMethod::INTERPOLATION:
      heights = (low(y) + high(y)) / 2;
      break;
    case SummationMethod::MINORING:
      heights = at::minimum(low(y), high(y));
      break;
    case SummationMethod::MAJORING:
      heights = at::maximum(low(y), high(y));
      break;
  }
  return ((low(x) - high(x)) * heights).sum(0);
}

Tensor average_over_labels(const Tensor& areas, const AUCOptions& options) {
  if (options.num_labels == 0) return areas;
  if (options.label_weights.empty()) return areas.mean();
  const Tensor weights = at::tensor(options.label_weights, areas.options());
  return divide_no_nan((areas * weights).sum(), weights.sum());
}

[[noreturn]] void throw_option(const char* option, double value, const char* rule) {
  throw InvalidArgumentError(str("AUC: ", option, " is ", value, "; it must ", rule));
}

void check_label_weights(const AUCOptions& options) {
  for (const double weight : options.label_weights) {
    if (!(weight >= 0 && std::isfinite(weight))) {
      throw_option("a label weight", weight, "be a finite number not below 0");
    }
  }
  const auto weights = static_cast<int64_t>(options.label_weights.size());
  if (options.num_labels > 0 && weights > 0 && weights != options.num_labels) {
    throw InvalidArgumentError(
        str("AUC: there are ", weights, " label_weights for ", options.num_labels, " labels"));
  }
}

// The ends are below 0 and above 1, so that every prediction is between two thresholds.
std::vector<double> all_thresholds(const AUCOptions& options) {
  if (options.num_labels < 0) throw_option("num_labels", options.num_labels, "not be negative");
  check_label_weights(options);
  std::vector<double> thresholds = options.thresholds;
  if (thresholds.empty()) {
    if (options.num_thresholds <= 1) {
      throw_option("num_thresholds", options.num_thresholds, "be above 1");
    }
    check_not_too_many("AUC", "num_thresholds", options.num_thresholds);
    for (int64_t i = 1; i < options.num_thresholds - 1; ++i) {
      thresholds.push_back(static_cast<double>(i) / (options.num_thresholds - 1));
    }
  } else {
    check_thresholds("AUC", thresholds);
    std::sort(thresholds.begin(), thresholds.end());
  }
  thresholds.insert(thresholds.begin(), -keras::backend::kEpsilon);
  thresholds.push_back(1 + keras::backend::kEpsilon);
  return thresholds;
}

std::shared_ptr<MetricState> make_auc_state(const AUCOptions& options) {
  std::vector<int64_t> shape = {static_cast<int64_t>(all_thresholds(options).size())};
  if (options.num_labels > 0) shape.push_back(options.num_labels);
  return std::make_shared<MetricState>(MetricState::Options{
      .name = options.name,
      .variable_names = {"true_positives", "true_negatives", "false_positives", "false_negatives"},
      .result =
          [options](const std::vector<Tensor>& values) {
            return average_over_labels(area({values[0], values[1], values[2], values[3]}, options),
                                       options);
          },
      .shape = shape});
}

// Times the weights of the labels, where these are not averaged apart.
void weigh_labels(ConfusionData& data, const AUCOptions& options,
                  const HostConstant& label_weights) {
  if (options.label_weights.empty() || options.num_labels > 0) return;
  const auto count = static_cast<int64_t>(options.label_weights.size());
  if (data.predictions.dim() == 0 || data.predictions.size(-1) != count) {
    throw InvalidArgumentError(str(options.name, ": there are ", count,
                                   " label_weights for predictions ", describe(data.predictions)));
  }
  const Tensor weights =
      label_weights.on(data.predictions.device()).to(data.predictions.scalar_type());
  data.weights =
      (data.weights.defined() ? data.weights * weights : weights).expand_as(data.predictions);
}

void update_auc(MetricState& state, const ConfusionData& batch, const AUCOptions& options,
                const Thresholds& thresholds, const HostConstant& label_weights) {
  const Tensor probabilities =
      options.from_logits ? batch.predictions.to(state.dtype()).sigmoid() : batch.predictions;
  ConfusionData data = match_confusion({batch.labels, probabilities, batch.weights}, {},
                                       state.dtype(), state.name().c_str());
  if (options.num_labels > 0 &&
      (data.predictions.dim() != 2 || data.predictions.size(1) != options.num_labels)) {
    throw InvalidArgumentError(str(options.name, ": predictions are ", describe(batch.predictions),
                                   ", but num_labels is ", options.num_labels));
  }
  weigh_labels(data, options, label_weights);
  data.predictions = data.predictions.clamp(0, 1);
  const ConfusionCounts counts = count_confusion(data, thresholds, options.num_labels);
  state.add({counts.true_positives, counts.true_negatives, counts.false_positives,
             counts.false_negatives});
}

const char* summation_name(keras::metrics::SummationMethod method) {
  switch (method) {
    case keras::metrics::SummationMethod::MINORING:
      return "minoring";
    case keras::metrics::SummationMethod::MAJORING:
      return "majoring";
    case keras::metrics::SummationMethod::INTERPOLATION:
      break;
  }
  return "interpolation";
}

keras::Config auc_config(const AUCOptions& options) {
  const bool multi = options.num_labels > 0;
  Json config = {{"num_thresholds", options.num_thresholds},
                 {"curve", options.curve == keras::metrics::Curve::PR ? "PR" : "ROC"},
                 {"summation_method", summation_name(options.summation_method)},
                 {"multi_label", multi},
                 {"num_labels", multi ? Json(options.num_labels) : Json(nullptr)},
                 {"from_logits", options.from_logits}};
  if (!options.thresholds.empty()) config["thresholds"] = options.thresholds;
  if (!options.label_weights.empty()) config["label_weights"] = options.label_weights;
  return ConfigData::config_of(std::move(config));
}

}  // namespace
}  // namespace internal

namespace keras::metrics {

AUC::AUC(const AUCOptions& options)
    : PredictionMetric(internal::make_auc_state(options),
                       [options,
                        thresholds = internal::Thresholds(internal::all_thresholds(options),
                                                          internal::keras_floatx()),
                        label_weights = internal::HostConstant(
                            at::tensor(options.label_weights, at::dtype(at::kDouble)))](
                           internal::MetricState& state, const Tensor& y_true, const Tensor& y_pred,
                           const Tensor& sample_weight) {
                         internal::update_auc(state, {y_true, y_pred, sample_weight}, options,
                                              thresholds, label_weights);
                       }) {
  describe("AUC", internal::auc_config(options));
}

}  // namespace keras::metrics
}  // namespace cohort
