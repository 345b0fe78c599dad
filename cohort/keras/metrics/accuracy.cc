#include "cohort/keras/metrics/accuracy.h"

#include "cohort/core/error.h"
#include "cohort/keras/losses/crossentropy.h"
#include "cohort/keras/metrics/metric_state.h"
#include "cohort/keras/weighting.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::metrics {
namespace {

using internal::str;

void squeeze_and_check(Tensor& y_true, Tensor& y_pred, const char* what) {
  const Tensor labels = y_true;
  const Tensor predictions = y_pred;
  internal::squeeze_last_of_larger(y_true, y_pred);
  if (y_true.sizes() != y_pred.sizes()) {
    throw InvalidArgumentError(str(what, ": labels ", internal::describe(labels),
                                   " do not fit predictions ", internal::describe(predictions)));
  }
}

Tensor equal_values(const Tensor& labels, const Tensor& predictions, double) {
  Tensor y_true = labels;
  Tensor y_pred = predictions;
  squeeze_and_check(y_true, y_pred, "accuracy");
  return y_true == y_pred;
}

Tensor sparse_matches(const Tensor& labels, const Tensor& predictions, double) {
  const Tensor y_true = internal::sparse_labels(labels, predictions, "sparse_categorical_accuracy");
  const Tensor matches = predictions.argmax(-1) == y_true;
  if (!labels.is_floating_point()) return matches;
  // A label with a fraction is no class, to Keras: here it is not cut off.
  return matches.logical_and(labels.trunc().eq(labels).to(matches.device()).reshape_as(matches));
}

Tensor binary_matches(const Tensor& labels, const Tensor& predictions, double threshold) {
  Tensor y_true = labels;
  Tensor y_pred = predictions;
  squeeze_and_check(y_true, y_pred, "binary_accuracy");
  if (y_pred.dim() == 0) throw InvalidArgumentError("binary_accuracy: predictions are a scalar");
  return ((y_pred > threshold).to(y_pred.scalar_type()) == y_true).to(float64).mean(-1);
}

std::string name_or(const std::string& name, const char* otherwise) {
  return name.empty() ? otherwise : name;
}

}  // namespace

MeanOfMatches::MeanOfMatches(const std::string& name, Function function, double threshold)
    : Metric(internal::make_mean_state(name)), function_(function), threshold_(threshold) {}

void MeanOfMatches::update_state(const Tensor& y_true, const Tensor& y_pred,
                                 const Tensor& sample_weight) const {
  const NoGradient no_gradient;
  internal::add_to_mean(state(), function_(y_true.detach(), y_pred.detach(), threshold_),
                        sample_weight);
}

Tensor MeanOfMatches::operator()(const Tensor& y_true, const Tensor& y_pred,
                                 const Tensor& sample_weight) const {
  update_state(y_true, y_pred, sample_weight);
  return result();
}

Accuracy::Accuracy(const MetricOptions& options)
    : MeanOfMatches(name_or(options.name, "accuracy"), equal_values) {}

SparseCategoricalAccuracy::SparseCategoricalAccuracy(const MetricOptions& options)
    : MeanOfMatches(name_or(options.name, "sparse_categorical_accuracy"), sparse_matches) {}

BinaryAccuracy::BinaryAccuracy(const BinaryAccuracyOptions& options)
    : MeanOfMatches(options.name, binary_matches, options.threshold) {}

}  // namespace cohort::keras::metrics
