#include "cohort/keras/losses/crossentropy.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/nll_loss.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <tuple>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/keras/base/backend.h"
#include "cohort/keras/base/logits.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/base/policy.h"
#include "cohort/keras/base/range_watch.h"
#include "cohort/keras/base/weighting.h"
#include "cohort/keras/losses/known_predictions.h"
#include "cohort/ops/class_rows.h"
#include "cohort/ops/kinks.h"

namespace cohort {
namespace internal {
namespace {

[[noreturn]] void throw_shapes(const char* what, const Tensor& y_true, const Tensor& y_pred,
                               const char* advice = "") {
  throw InvalidArgumentError(str(what, ": labels ", describe(y_true), " do not fit predictions ",
                                 describe(y_pred), advice));
}

// The first label outside [0, classes), by its place in the batch.
[[noreturn]] void throw_label_out_of_range(const Tensor& labels, int64_t classes) {
  const Tensor flat = labels.reshape({-1});
  const int64_t place = (flat.lt(0)).logical_or(flat.ge(classes)).nonzero()[0].item<int64_t>();
  std::vector<int64_t> index(static_cast<size_t>(labels.dim()));
  int64_t rest = place;
  for (size_t d = index.size(); d-- > 0;) {
    index[d] = rest % labels.size(static_cast<int64_t>(d));
    rest /= labels.size(static_cast<int64_t>(d));
  }
  throw InvalidArgumentError(str("label ", flat[place].item<int64_t>(), " at index ",
                                 shape_str(index), " is outside [0, ", classes,
                                 "): the predictions have ", classes, " classes"));
}

void check_labels(const Tensor& labels, int64_t classes) {
  if (labels.numel() == 0) return;
  const auto [least, largest] = at::aminmax(labels);
  if (least.item<int64_t>() < 0 || largest.item<int64_t>() >= classes) {
    throw_label_out_of_range(labels, classes);
  }
}

// Keras cuts fractions off without a word. Labels on a device are looked at in the first batches
// alone, for the host waits for them.
void warn_of_fractions(const Tensor& labels, const char* what, std::atomic<bool>& warned,
                       std::atomic<int>& looks_left) {
  if (!labels.is_floating_point() || warned.load(std::memory_order_relaxed)) return;
  if (!labels.is_cpu() && looks_left.fetch_sub(1, std::memory_order_relaxed) <= 0) return;
  if (!labels.trunc().ne(labels).any().item<bool>() || warned.exchange(true)) return;
  log_warning(what, ": labels have fractions, which are cut off (1.5 is class 1), as Keras does; ",
              "are they no classes, but probabilities?");
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// What a sparse loss has seen of its labels and predictions.
struct SparseWarnings {
  RangeWatch labels{"label",
                    ", the classes of the predictions; the losses of that step were NaN for such "
                    "labels"};
  std::atomic<bool> fractions = false;
  std::atomic<int> looks_left = ScoreWatch::kLooks;  // for fractions, on devices
  ScoreWatch scores;
};

Tensor sparse_crossentropy_of_all(const Tensor& y_true, const Tensor& y_pred, bool from_logits,
                                  const char* what, SparseWarnings& warnings) {
  const Predictions known = best_known(y_pred, logits_of_softmax(y_pred), from_logits, what);
  const Tensor predictions = widened(known.values);
  const bool are_logits = known.are_logits;
  if (!are_logits) warnings.scores.look(predictions, what);
  // Integer labels need no copy. Other labels go through the same loop, so that a label's dtype
  // changes no bit.
  const auto by_rows = [&](const Tensor& of_rows) {
    return are_logits && are_small_class_rows(of_rows, predictions)
               ? crossentropy_of_rows(of_rows, predictions)
               : Tensor();
  };
  if (const Tensor losses = by_rows(y_true); losses.defined()) return losses;
  const Tensor labels = sparse_labels(y_true, y_pred, what);
  warn_of_fractions(y_true, what, warnings.fractions, warnings.looks_left);
  if (const Tensor losses = by_rows(labels); losses.defined()) return losses;
  const int64_t classes = y_pred.size(-1);
  Tensor valid, numbers = labels;
  if (labels.is_cpu()) {
    check_labels(labels, classes);
  } else {
    valid = at::logical_and(labels.ge(0), labels.lt(classes));
    numbers = warnings.labels.look(labels, classes);
  }
  constexpr double kEpsilon = keras::backend::kEpsilon;
  const Tensor logits = are_logits ? predictions : predictions.clamp(kEpsilon, 1 - kEpsilon).log();
  const Tensor flat = at::log_softmax(logits.reshape({labels.numel(), classes}), 1);
  const Tensor losses =
      at::nll_loss(flat, numbers.reshape({labels.numel()}), {}, at::Reduction::None)
          .reshape(labels.sizes());
  return valid.defined() ? losses.masked_fill(valid.logical_not(), kNaN) : losses;
}

// Examples of the ignored class have a loss of 0 and give no gradient, whatever their predictions
// are. The result is marked with those that count.
Tensor sparse_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                           const keras::losses::SparseCategoricalCrossentropyOptions& options,
                           SparseWarnings& warnings) {
  const char* what = options.name.c_str();
  if (!options.ignore_class) {
    return sparse_crossentropy_of_all(y_true, y_pred, options.from_logits, what, warnings);
  }
  const Predictions known =
      best_known(y_pred, logits_of_softmax(y_pred), options.from_logits, what);
  const Tensor labels = sparse_labels(y_true, known.values, what);
  const Tensor ignored = labels.eq(*options.ignore_class);
  const Tensor losses = sparse_crossentropy_of_all(
      labels.masked_fill(ignored, 0), known.values.masked_fill(ignored.unsqueeze(-1), 0),
      known.are_logits, what, warnings);
  return with_mask(losses.masked_fill(ignored, 0), ignored.logical_not());
}

Tensor binary_crossentropy(const Tensor& labels, const Tensor& predictions,
                           const keras::losses::BinaryCrossentropyOptions& options,
                           ScoreWatch& watch) {
  const char* what = options.name.c_str();
  const auto [known, are_logits] =
      best_known(predictions, logits_of_sigmoid(predictions), options.from_logits, what);
  auto [y, p] = match_shapes(labels, known, what);
  if (options.label_smoothing != 0) {
    y = y * (1 - options.label_smoothing) + 0.5 * options.label_smoothing;
  }
  if (!are_logits) watch.look(p, what);
  return crossentropy_of_elements(y, {p, are_logits}).mean(-1);
}

Tensor categorical_crossentropy(const Tensor& labels, const Tensor& predictions,
                                const keras::losses::CategoricalCrossentropyOptions& options,
                                ScoreWatch& watch) {
  const char* what = options.name.c_str();
  if (are_class_numbers(labels, predictions)) {
    throw_shapes(what, labels, predictions, kForSparse);
  }
  const auto [known, are_logits] =
      best_known(predictions, logits_of_softmax(predictions), options.from_logits, what);
  auto [y, p] = match_shapes(labels, known, what);
  const int64_t axis = options.axis;
  if (axis < -p.dim() || axis >= p.dim()) {
    throw InvalidArgumentError(
        str(options.name, ": axis ", axis, " is none of predictions ", describe(predictions)));
  }
  if (options.label_smoothing != 0) {
    y = y * (1 - options.label_smoothing) +
        options.label_smoothing / static_cast<double>(p.size(axis));
  }
  if (are_logits) return (y * at::log_softmax(p, axis)).sum(axis).neg();
  watch.look(p, what, /*are_shares=*/true);
  constexpr double kEpsilon = keras::backend::kEpsilon;
  p = (p / p.sum(axis, /*keepdim=*/true)).clamp(kEpsilon, 1 - kEpsilon);
  return (y * p.log()).sum(axis).neg();
}

}  // namespace

void check_smoothing(const char* loss, double label_smoothing) {
  if (label_smoothing >= 0 && label_smoothing <= 1) return;
  throw InvalidArgumentError(
      str(loss, ": label_smoothing is ", label_smoothing, "; it must lie in [0, 1]"));
}

bool are_class_numbers(const Tensor& labels, const Tensor& predictions) {
  if (predictions.dim() == 0 || predictions.size(-1) <= 1) return false;
  return labels.dim() + 1 == predictions.dim() ||
         (labels.dim() == predictions.dim() && labels.size(-1) == 1);
}

void check_real_labels(const Tensor& labels, const char* what) {
  if (!labels.is_complex()) return;
  throw InvalidArgumentError(
      str(what, ": labels ", describe(labels),
          " are complex numbers; give real ones, at::real(labels) for example"));
}

Tensor sparse_labels(const Tensor& labels, const Tensor& predictions, const char* what) {
  if (predictions.dim() == 0 || !predictions.is_floating_point()) {
    throw_shapes(what, labels, predictions);
  }
  const at::IntArrayRef expected = predictions.sizes().slice(0, predictions.dim() - 1);
  Tensor fitted = labels;
  if (labels.dim() == predictions.dim() && labels.size(-1) == 1) fitted = labels.squeeze(-1);
  if (fitted.sizes() != expected) {
    throw_shapes(what, labels, predictions,
                 labels.sizes() == predictions.sizes() ? kForCategorical : "");
  }
  check_real_labels(labels, what);
  return fitted.to(predictions.device(), int64);
}

Matched match_shapes(Tensor y_true, Tensor y_pred, const char* what) {
  Matched matched{y_true, widened(y_pred)};
  squeeze_last_of_larger(matched.y_true, matched.y_pred);
  if (matched.y_true.sizes() != matched.y_pred.sizes() || !y_pred.is_floating_point()) {
    throw_shapes(what, y_true, y_pred);
  }
  if (matched.y_pred.dim() == 0) {
    throw InvalidArgumentError(
        str(what, ": predictions are a scalar; they need a batch dimension"));
  }
  check_real_labels(y_true, what);
  matched.y_true = matched.y_true.to(y_pred.device(), matched.y_pred.scalar_type());
  return matched;
}

}  // namespace internal

namespace keras::losses {

SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(
    const SparseCategoricalCrossentropyOptions& options)
    : Loss(
          [options, warnings = std::make_shared<internal::SparseWarnings>()](const Tensor& y_true,
                                                                             const Tensor& y_pred) {
            return internal::sparse_crossentropy(y_true, y_pred, options, *warnings);
          },
          {.reduction = options.reduction, .name = options.name}) {
  Config config;
  config.set("from_logits", options.from_logits);
  if (options.ignore_class) config.set("ignore_class", *options.ignore_class);
  describe("SparseCategoricalCrossentropy", config);
}

BinaryCrossentropy::BinaryCrossentropy(const BinaryCrossentropyOptions& options)
    : Loss(
          [options, watch = std::make_shared<internal::ScoreWatch>()](const Tensor& y_true,
                                                                      const Tensor& y_pred) {
            return internal::binary_crossentropy(y_true, y_pred, options, *watch);
          },
          {.reduction = options.reduction, .name = options.name}) {
  internal::check_smoothing("BinaryCrossentropy", options.label_smoothing);
  describe("BinaryCrossentropy", Config()
                                     .set("from_logits", options.from_logits)
                                     .set("label_smoothing", options.label_smoothing));
}

CategoricalCrossentropy::CategoricalCrossentropy(const CategoricalCrossentropyOptions& options)
    : Loss(
          [options, watch = std::make_shared<internal::ScoreWatch>()](const Tensor& y_true,
                                                                      const Tensor& y_pred) {
            return internal::categorical_crossentropy(y_true, y_pred, options, *watch);
          },
          {.reduction = options.reduction, .name = options.name}) {
  internal::check_smoothing("CategoricalCrossentropy", options.label_smoothing);
  describe("CategoricalCrossentropy", Config()
                                          .set("from_logits", options.from_logits)
                                          .set("label_smoothing", options.label_smoothing)
                                          .set("axis", options.axis));
}

}  // namespace keras::losses
}  // namespace cohort
