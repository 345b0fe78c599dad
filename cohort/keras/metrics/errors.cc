#include "cohort/keras/metrics/errors.h"

#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "cohort/core/error.h"
#include "cohort/keras/base/fields.h"
#include "cohort/keras/base/weighting.h"
#include "cohort/keras/losses/losses.h"
#include "cohort/keras/metrics/confusion_counts.h"
#include "cohort/keras/metrics/metric_state.h"

namespace cohort {
namespace internal {
namespace {

using keras::losses::Loss;
using keras::losses::Reduction;

constexpr Reduction kNoReduction = Reduction::NONE;

Tensor as_floating(const Tensor& y_pred) {
  return y_pred.is_floating_point() ? y_pred : y_pred.to(float32);
}

// A function of labels and predictions from a loss without reduction.
keras::metrics::MeanMetricWrapper::Function mean_of_loss(Loss loss) {
  return [loss = std::move(loss)](const Tensor& y_true, const Tensor& y_pred) {
    return loss(y_true, as_floating(y_pred));
  };
}

std::shared_ptr<MetricState> make_root_mean_state(std::string name) {
  return std::make_shared<MetricState>(MetricState::Options{
      std::move(name), {"total", "count"}, [](const std::vector<Tensor>& values) {
        const Tensor& total = values[0];
        const Tensor& count = values[1];
        return at::where(count == 0, at::zeros_like(total), total / count).sqrt();
      }});
}

}  // namespace
}  // namespace internal

namespace keras::metrics {

using internal::kNoReduction;
using internal::mean_of_loss;
using internal::with_name;

MeanSquaredError::MeanSquaredError(const MetricOptions& options)
    : MeanMetricWrapper(mean_of_loss(losses::MeanSquaredError({.reduction = kNoReduction})),
                        with_name(options, "mean_squared_error")) {
  describe("MeanSquaredError");
}

MeanAbsoluteError::MeanAbsoluteError(const MetricOptions& options)
    : MeanMetricWrapper(mean_of_loss(losses::MeanAbsoluteError({.reduction = kNoReduction})),
                        with_name(options, "mean_absolute_error")) {
  describe("MeanAbsoluteError");
}

MeanAbsolutePercentageError::MeanAbsolutePercentageError(const MetricOptions& options)
    : MeanMetricWrapper(
          mean_of_loss(losses::MeanAbsolutePercentageError({.reduction = kNoReduction})),
          with_name(options, "mean_absolute_percentage_error")) {
  describe("MeanAbsolutePercentageError");
}

MeanSquaredLogarithmicError::MeanSquaredLogarithmicError(const MetricOptions& options)
    : MeanMetricWrapper(
          mean_of_loss(losses::MeanSquaredLogarithmicError({.reduction = kNoReduction})),
          with_name(options, "mean_squared_logarithmic_error")) {
  describe("MeanSquaredLogarithmicError");
}

LogCoshError::LogCoshError(const MetricOptions& options)
    : MeanMetricWrapper(mean_of_loss(losses::LogCosh({.reduction = kNoReduction})),
                        with_name(options, "logcosh")) {
  describe("LogCoshError");
}

Hinge::Hinge(const MetricOptions& options)
    : MeanMetricWrapper(mean_of_loss(losses::Hinge({.reduction = kNoReduction})),
                        with_name(options, "hinge")) {
  describe("Hinge");
}

SquaredHinge::SquaredHinge(const MetricOptions& options)
    : MeanMetricWrapper(mean_of_loss(losses::SquaredHinge({.reduction = kNoReduction})),
                        with_name(options, "squared_hinge")) {
  describe("SquaredHinge");
}

CategoricalHinge::CategoricalHinge(const MetricOptions& options)
    : MeanMetricWrapper(mean_of_loss(losses::CategoricalHinge({.reduction = kNoReduction})),
                        with_name(options, "categorical_hinge")) {
  describe("CategoricalHinge");
}

KLDivergence::KLDivergence(const MetricOptions& options)
    : MeanMetricWrapper(mean_of_loss(losses::KLDivergence({.reduction = kNoReduction})),
                        with_name(options, "kullback_leibler_divergence")) {
  describe("KLDivergence");
}

Poisson::Poisson(const MetricOptions& options)
    : MeanMetricWrapper(mean_of_loss(losses::Poisson({.reduction = kNoReduction})),
                        with_name(options, "poisson")) {
  describe("Poisson");
}

BinaryCrossentropy::BinaryCrossentropy(const CrossentropyOptions& options)
    : MeanMetricWrapper(
          mean_of_loss(losses::BinaryCrossentropy({.from_logits = options.from_logits,
                                                   .label_smoothing = options.label_smoothing,
                                                   .reduction = kNoReduction})),
          with_name({options.name}, "binary_crossentropy")) {
  describe("BinaryCrossentropy", Config()
                                     .set("from_logits", options.from_logits)
                                     .set("label_smoothing", options.label_smoothing));
}

CategoricalCrossentropy::CategoricalCrossentropy(const CrossentropyOptions& options)
    : MeanMetricWrapper(
          mean_of_loss(losses::CategoricalCrossentropy({.from_logits = options.from_logits,
                                                        .label_smoothing = options.label_smoothing,
                                                        .reduction = kNoReduction})),
          with_name({options.name}, "categorical_crossentropy")) {
  describe("CategoricalCrossentropy", Config()
                                          .set("from_logits", options.from_logits)
                                          .set("label_smoothing", options.label_smoothing));
}

SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(
    const SparseCrossentropyOptions& options)
    : MeanMetricWrapper(
          mean_of_loss(losses::SparseCategoricalCrossentropy({.from_logits = options.from_logits,
                                                              .ignore_class = options.ignore_class,
                                                              .reduction = kNoReduction})),
          {options.name}) {
  Config config;
  config.set("from_logits", options.from_logits);
  if (options.ignore_class) config.set("ignore_class", *options.ignore_class);
  describe("SparseCategoricalCrossentropy", config);
}

CosineSimilarity::CosineSimilarity(const CosineSimilarityOptions& options)
    : MeanMetricWrapper(
          [loss = losses::CosineSimilarity({.axis = options.axis, .reduction = kNoReduction})](
              const Tensor& y_true, const Tensor& y_pred) {
            return loss(y_true, internal::as_floating(y_pred)).neg();
          },
          {options.name}) {
  describe("CosineSimilarity", Config().set("axis", options.axis));
}

RootMeanSquaredError::RootMeanSquaredError(const MetricOptions& options)
    : PredictionMetric(
          internal::make_root_mean_state(with_name(options, "root_mean_squared_error").name),
          [](internal::MetricState& state, const Tensor& y_true, const Tensor& y_pred,
             const Tensor& sample_weight) {
            const auto [target, value] =
                internal::match_shapes(y_true, internal::as_floating(y_pred), state.name().c_str());
            internal::add_to_mean(state, (value - target).square(), sample_weight);
          }) {
  describe("RootMeanSquaredError");
}

MeanRelativeError::MeanRelativeError(const Tensor& normalizer, const MetricOptions& options)
    : PredictionMetric(
          internal::make_mean_state(with_name(options, "mean_relative_error").name),
          [normalizer = normalizer.defined() ? normalizer.detach() : normalizer](
              internal::MetricState& state, const Tensor& y_true, const Tensor& y_pred,
              const Tensor& sample_weight) {
            const auto [target, value] =
                internal::match_shapes(y_true, internal::as_floating(y_pred), state.name().c_str());
            if (!internal::broadcasts_to(normalizer.sizes(), value.sizes())) {
              throw InvalidArgumentError(internal::str(
                  state.name(), ": the normalizer is ", internal::describe(normalizer),
                  ", which does not broadcast to predictions ", internal::describe(value)));
            }
            const Tensor scale = normalizer.to(value.options()).expand_as(value);
            internal::add_to_mean(state, internal::divide_no_nan((value - target).abs(), scale),
                                  sample_weight);
          }) {
  if (!normalizer.defined()) {
    throw InvalidArgumentError("MeanRelativeError: the normalizer is undefined");
  }
  describe("MeanRelativeError",
           internal::ConfigData::config_of({{"normalizer", internal::field_json(normalizer)}}));
}

}  // namespace keras::metrics
}  // namespace cohort
