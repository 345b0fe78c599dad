#include "cohort/keras/metrics/iou.h"

#include <ATen/ops/bincount.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/keras/losses/crossentropy.h"
#include "cohort/keras/metrics/confusion_counts.h"
#include "cohort/keras/metrics/metric_state.h"

namespace cohort {
namespace internal {
namespace {

using keras::metrics::IoUOptions;

// Errors: InvalidArgument.
void check_iou(const char* metric, const IoUOptions& options) {
  if (options.num_classes < 1) {
    throw InvalidArgumentError(
        str(metric, ": num_classes is ", options.num_classes, "; it must be above 0"));
  }
  check_not_too_many(metric, "num_classes", options.num_classes);
  if (options.target_class_ids.empty()) {
    throw InvalidArgumentError(str(metric, ": target_class_ids is empty; name the classes"));
  }
  for (const int64_t id : options.target_class_ids) {
    if (id >= 0 && id < options.num_classes) continue;
    throw InvalidArgumentError(str(metric, ": target_class_ids has ", id, ", but there are ",
                                   options.num_classes, " classes"));
  }
}

std::shared_ptr<MetricState> make_iou_state(const char* metric, const IoUOptions& options) {
  check_iou(metric, options);
  const Tensor targets = at::tensor(options.target_class_ids, at::kLong);
  return std::make_shared<MetricState>(MetricState::Options{
      .name = options.name,
      .variable_names = {"total_confusion_matrix"},
      .result =
          [targets](const std::vector<Tensor>& values) {
            const Tensor& matrix = values[0];
            const Tensor hits = matrix.diagonal();
            const Tensor either = matrix.sum(0) + matrix.sum(1) - hits;
            const Tensor ids = targets.to(matrix.device());
            const Tensor unions = either.index_select(0, ids);
            const Tensor shares = divide_no_nan(hits.index_select(0, ids), unions);
            return divide_no_nan(shares.sum(), unions.ne(0).sum().to(shares.scalar_type()));
          },
      .shape = {options.num_classes, options.num_classes}});
}

Tensor classes_of(const Tensor& values, bool sparse, int64_t axis) {
  return (sparse ? values : values.argmax(axis)).to(at::kLong).reshape({-1});
}

// Errors: InvalidArgument (names the class).
void check_classes(const Tensor& classes, const char* what, int64_t num_classes,
                   const MetricState& state) {
  if (classes.numel() == 0) return;
  for (const Tensor& extreme : {classes.min(), classes.max()}) {
    const auto one = extreme.item<int64_t>();
    if (one >= 0 && one < num_classes) continue;
    throw InvalidArgumentError(str(state.name(), ": a ", what, " is class ", one,
                                   ", but there are ", num_classes, " classes"));
  }
}

// matrix[label][prediction] += weight.
void update_iou(MetricState& state, const IoUOptions& options, const Tensor& y_true,
                const Tensor& y_pred, const Tensor& sample_weight) {
  check_real_labels(y_true, state.name().c_str());
  Tensor labels = classes_of(y_true, options.sparse_y_true, options.axis);
  Tensor predictions = classes_of(y_pred, options.sparse_y_pred, options.axis).to(labels.device());
  Tensor weights;
  if (sample_weight.defined()) {
    weights = sample_weight.detach().to(labels.device(), at::kDouble).reshape({-1});
  }
  if (labels.numel() != predictions.numel() ||
      (weights.defined() && weights.numel() != labels.numel())) {
    throw InvalidArgumentError(str(state.name(), ": labels ", describe(y_true), ", predictions ",
                                   describe(y_pred), " and sample_weight ", describe(sample_weight),
                                   " do not fit each other"));
  }
  if (options.ignore_class) {
    const Tensor counted = labels.ne(*options.ignore_class);
    labels = labels.masked_select(counted);
    predictions = predictions.masked_select(counted);
    if (weights.defined()) weights = weights.masked_select(counted);
  }
  check_classes(labels, "label", options.num_classes, state);
  check_classes(predictions, "prediction", options.num_classes, state);
  const int64_t n = options.num_classes;
  const auto weighted = weights.defined() ? c10::optional<Tensor>(weights) : c10::nullopt;
  state.add(
      {at::bincount(labels * n + predictions, weighted, n * n).reshape({n, n}).to(state.dtype())});
}

std::vector<int64_t> all_classes(int64_t count) {
  std::vector<int64_t> ids(static_cast<size_t>(std::max<int64_t>(count, 0)));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

IoUOptions with_own_name(IoUOptions options, const char* own_name) {
  if (options.name.empty()) options.name = own_name;
  return options;
}

IoUOptions of_all_classes(const keras::metrics::MeanIoUOptions& options) {
  check_not_too_many("MeanIoU", "num_classes", options.num_classes);
  return with_own_name({.num_classes = options.num_classes,
                        .target_class_ids = all_classes(std::max<int64_t>(options.num_classes, 1)),
                        .ignore_class = options.ignore_class,
                        .sparse_y_true = options.sparse_y_true,
                        .sparse_y_pred = options.sparse_y_pred,
                        .axis = options.axis,
                        .name = options.name},
                       "mean_io_u");
}

IoUOptions of_all_one_hot(const keras::metrics::OneHotMeanIoUOptions& options) {
  return of_all_classes({.num_classes = options.num_classes,
                         .ignore_class = options.ignore_class,
                         .sparse_y_true = false,
                         .sparse_y_pred = options.sparse_y_pred,
                         .axis = options.axis,
                         .name = options.name.empty() ? "one_hot_mean_io_u" : options.name});
}

IoUOptions of_one_hot(const keras::metrics::OneHotIoUOptions& options) {
  return with_own_name({.num_classes = options.num_classes,
                        .target_class_ids = options.target_class_ids,
                        .ignore_class = options.ignore_class,
                        .sparse_y_true = false,
                        .sparse_y_pred = options.sparse_y_pred,
                        .axis = options.axis,
                        .name = options.name},
                       "one_hot_io_u");
}

auto make_iou_update(const IoUOptions& options) {
  return [options](MetricState& state, const Tensor& y_true, const Tensor& y_pred,
                   const Tensor& sample_weight) {
    update_iou(state, options, y_true, y_pred, sample_weight);
  };
}

auto make_binary_iou_update(const IoUOptions& options, double threshold) {
  return [options, threshold](MetricState& state, const Tensor& y_true, const Tensor& y_pred,
                              const Tensor& sample_weight) {
    update_iou(state, options, y_true, y_pred.ge(threshold), sample_weight);
  };
}

IoUOptions of_two_classes(const keras::metrics::BinaryIoUOptions& options) {
  return with_own_name(
      {.num_classes = 2, .target_class_ids = options.target_class_ids, .name = options.name},
      "binary_io_u");
}

// The options that there are, in Keras's form.
template <class Options>
keras::Config iou_config(const Options& options) {
  Json config = Json::object();
  if constexpr (requires { options.num_classes; }) config["num_classes"] = options.num_classes;
  if constexpr (requires { options.target_class_ids; }) {
    config["target_class_ids"] = options.target_class_ids;
  }
  if constexpr (requires { options.ignore_class; }) {
    config["ignore_class"] = options.ignore_class ? Json(*options.ignore_class) : Json(nullptr);
  }
  if constexpr (requires { options.sparse_y_true; }) {
    config["sparse_y_true"] = options.sparse_y_true;
  }
  if constexpr (requires { options.sparse_y_pred; }) {
    config["sparse_y_pred"] = options.sparse_y_pred;
  }
  if constexpr (requires { options.axis; }) config["axis"] = options.axis;
  if constexpr (requires { options.threshold; }) config["threshold"] = options.threshold;
  return ConfigData::config_of(std::move(config));
}

}  // namespace
}  // namespace internal

namespace keras::metrics {

IoU::IoU(const IoUOptions& options)
    : PredictionMetric(internal::make_iou_state("IoU", internal::with_own_name(options, "io_u")),
                       internal::make_iou_update(options)) {
  describe("IoU", internal::iou_config(options));
}

MeanIoU::MeanIoU(const MeanIoUOptions& options)
    : PredictionMetric(internal::make_iou_state("MeanIoU", internal::of_all_classes(options)),
                       internal::make_iou_update(internal::of_all_classes(options))) {
  describe("MeanIoU", internal::iou_config(options));
}

OneHotMeanIoU::OneHotMeanIoU(const OneHotMeanIoUOptions& options)
    : PredictionMetric(internal::make_iou_state("OneHotMeanIoU", internal::of_all_one_hot(options)),
                       internal::make_iou_update(internal::of_all_one_hot(options))) {
  describe("OneHotMeanIoU", internal::iou_config(options));
}

OneHotIoU::OneHotIoU(const OneHotIoUOptions& options)
    : PredictionMetric(internal::make_iou_state("OneHotIoU", internal::of_one_hot(options)),
                       internal::make_iou_update(internal::of_one_hot(options))) {
  describe("OneHotIoU", internal::iou_config(options));
}

BinaryIoU::BinaryIoU(const BinaryIoUOptions& options)
    : PredictionMetric(
          internal::make_iou_state("BinaryIoU", internal::of_two_classes(options)),
          internal::make_binary_iou_update(internal::of_two_classes(options), options.threshold)) {
  describe("BinaryIoU", internal::iou_config(options));
}

}  // namespace keras::metrics
}  // namespace cohort
