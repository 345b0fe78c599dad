#include "cohort/keras/metrics/accuracy.h"

#include "cohort/core/error.h"
#include "cohort/keras/base/weighting.h"
#include "cohort/keras/losses/crossentropy.h"
#include "cohort/keras/metrics/metric_state.h"
#include "cohort/ops/class_rows.h"

namespace cohort {
namespace internal {
namespace {

[[noreturn]] void throw_unfit(const char* what, const Tensor& y_true, const Tensor& y_pred,
                              const char* advice = "") {
  throw InvalidArgumentError(str(what, ": labels ", describe(y_true), " do not fit predictions ",
                                 describe(y_pred), advice));
}

void squeeze_and_check(Tensor& y_true, Tensor& y_pred, const char* what) {
  const Tensor labels = y_true;
  const Tensor predictions = y_pred;
  squeeze_last_of_larger(y_true, y_pred);
  if (y_true.sizes() != y_pred.sizes()) throw_unfit(what, labels, predictions);
}

Tensor equal_values(const Tensor& labels, const Tensor& predictions) {
  Tensor y_true = labels;
  Tensor y_pred = predictions;
  squeeze_and_check(y_true, y_pred, "accuracy");
  return y_true == y_pred;
}

Tensor sparse_matches(const Tensor& labels, const Tensor& predictions) {
  if (are_small_class_rows(labels, predictions)) {
    return matches_of_rows(labels, predictions);
  }
  const Tensor y_true = sparse_labels(labels, predictions, "sparse_categorical_accuracy");
  const Tensor matches = predictions.argmax(-1) == y_true;
  if (!labels.is_floating_point()) return matches;
  // A label with a fraction is no class, to Keras: here it is not cut off.
  return matches.logical_and(labels.trunc().eq(labels).to(matches.device()).reshape_as(matches));
}

void check_one_hot(const Tensor& labels, const Tensor& predictions, const char* what) {
  if (labels.dim() == 0 || labels.sizes() != predictions.sizes()) {
    throw_unfit(what, labels, predictions,
                are_class_numbers(labels, predictions) ? kForSparse : "");
  }
}

Tensor categorical_matches(const Tensor& labels, const Tensor& predictions) {
  check_one_hot(labels, predictions, "categorical_accuracy");
  return labels.argmax(-1).to(predictions.device()) == predictions.argmax(-1);
}

Tensor binary_matches(const Tensor& labels, const Tensor& predictions, double threshold) {
  Tensor y_true = labels;
  Tensor y_pred = predictions;
  squeeze_and_check(y_true, y_pred, "binary_accuracy");
  if (y_pred.dim() == 0) throw InvalidArgumentError("binary_accuracy: predictions are a scalar");
  return ((y_pred > threshold).to(y_pred.scalar_type()) == y_true).to(float64);
}

Tensor in_top_k(const Tensor& classes, const Tensor& predictions, int64_t k) {
  const Tensor known = classes.ge(0).logical_and(classes.lt(predictions.size(-1)));
  const Tensor index = classes.clamp(0, predictions.size(-1) - 1).unsqueeze(-1);
  const Tensor own = predictions.gather(-1, index);
  return (predictions > own)
      .sum(-1)
      .lt(k)
      .logical_and(known)
      .logical_and(own.squeeze(-1).isfinite());
}

void check_k(const char* metric, int64_t k) {
  if (k > 0) return;
  throw InvalidArgumentError(str(metric, ": k is ", k, "; it must be above 0"));
}

}  // namespace

Tensor accuracy_by_shapes(const Tensor& y_true, const Tensor& y_pred) {
  if (y_pred.dim() == 0) throw_unfit("accuracy", y_true, y_pred);
  if (y_pred.size(-1) == 1) return binary_matches(y_true, y_pred, 0.5).mean(-1);
  const bool sparse = y_true.dim() < y_pred.dim() || y_true.size(-1) == 1;
  return sparse ? sparse_matches(y_true, y_pred) : categorical_matches(y_true, y_pred);
}

}  // namespace internal

namespace keras::metrics {

Accuracy::Accuracy(const MetricOptions& options)
    : MeanMetricWrapper(internal::equal_values, internal::with_name(options, "accuracy")) {
  describe("Accuracy");
}

SparseCategoricalAccuracy::SparseCategoricalAccuracy(const MetricOptions& options)
    : MeanMetricWrapper(internal::sparse_matches,
                        internal::with_name(options, "sparse_categorical_accuracy")) {
  describe("SparseCategoricalAccuracy");
}

CategoricalAccuracy::CategoricalAccuracy(const MetricOptions& options)
    : MeanMetricWrapper(internal::categorical_matches,
                        internal::with_name(options, "categorical_accuracy")) {
  describe("CategoricalAccuracy");
}

BinaryAccuracy::BinaryAccuracy(const BinaryAccuracyOptions& options)
    : MeanMetricWrapper(
          [threshold = options.threshold](const Tensor& y_true, const Tensor& y_pred) {
            return internal::binary_matches(y_true, y_pred, threshold);
          },
          {.name = options.name}) {
  describe("BinaryAccuracy", Config().set("threshold", options.threshold));
}

SparseTopKCategoricalAccuracy::SparseTopKCategoricalAccuracy(const TopKOptions& options)
    : MeanMetricWrapper(
          [k = options.k](const Tensor& y_true, const Tensor& y_pred) {
            return internal::in_top_k(
                internal::sparse_labels(y_true, y_pred, "sparse_top_k_categorical_accuracy"),
                y_pred, k);
          },
          internal::with_name({options.name}, "sparse_top_k_categorical_accuracy")) {
  internal::check_k("SparseTopKCategoricalAccuracy", options.k);
  describe("SparseTopKCategoricalAccuracy", Config().set("k", options.k));
}

TopKCategoricalAccuracy::TopKCategoricalAccuracy(const TopKOptions& options)
    : MeanMetricWrapper(
          [k = options.k](const Tensor& y_true, const Tensor& y_pred) {
            internal::check_one_hot(y_true, y_pred, "top_k_categorical_accuracy");
            return internal::in_top_k(y_true.argmax(-1).to(y_pred.device()), y_pred, k);
          },
          internal::with_name({options.name}, "top_k_categorical_accuracy")) {
  internal::check_k("TopKCategoricalAccuracy", options.k);
  describe("TopKCategoricalAccuracy", Config().set("k", options.k));
}

}  // namespace keras::metrics
}  // namespace cohort
