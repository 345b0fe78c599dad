#include "cohort/keras/metrics/confusion_counts.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "cohort/core/error.h"
#include "cohort/keras/base/weighting.h"

namespace cohort::internal {
namespace {

int64_t checked_index(int64_t index, const Tensor& predictions, const char* metric) {
  const int64_t size = predictions.dim() == 0 ? 0 : predictions.size(-1);
  if (index >= -size && index < size) return index;
  throw InvalidArgumentError(
      str(metric, ": class_id is ", index, ", but the predictions are ", describe(predictions)));
}

Tensor only_top_k(const Tensor& predictions, int64_t k, const char* metric) {
  if (predictions.dim() == 0 || predictions.size(-1) < k) {
    throw InvalidArgumentError(
        str(metric, ": top_k is ", k, ", but the predictions are ", describe(predictions)));
  }
  // The first of equal predictions are taken, which topk does not promise.
  const Tensor places =
      std::get<1>(predictions.sort(/*stable=*/true, -1, /*descending=*/true)).narrow(-1, 0, k);
  return at::full_like(predictions, kNeverPositive)
      .scatter(-1, places, predictions.gather(-1, places));
}

// Sums over the thresholds from each one on: what is above threshold t is above those before it.
Tensor sums_from(const Tensor& histogram) { return histogram.flip(0).cumsum(0).flip(0); }

}  // namespace

Thresholds::Thresholds(std::vector<double> values, DType dtype) {
  const Tensor given = at::tensor(values, at::dtype(at::kDouble)).to(dtype);
  if (std::is_sorted(values.begin(), values.end())) {
    sorted_ = HostConstant(given);
    return;
  }
  const auto [sorted, order] = given.sort(0);
  sorted_ = HostConstant(sorted);
  places_ = HostConstant(order.argsort());
}

Tensor Thresholds::count_below(const Tensor& predictions) const {
  const Tensor comparable =
      at::where(predictions.isnan(),
                at::full_like(predictions, -std::numeric_limits<double>::infinity()), predictions);
  return at::searchsorted(sorted_.on(predictions.device()), comparable.contiguous());
}

Tensor Thresholds::in_program_order(const Tensor& rows) const {
  const Tensor places = places_.on(rows.device());
  return places.defined() ? rows.index_select(0, places) : rows;
}

void check_not_too_many(std::string_view metric, std::string_view option, int64_t count) {
  constexpr int64_t kMost = 1'000'000;
  if (count <= kMost) return;
  throw InvalidArgumentError(
      str(metric, ": ", option, " is ", count, "; it must be at most ", kMost));
}

void check_thresholds(std::string_view metric, const std::vector<double>& thresholds) {
  if (thresholds.empty()) {
    throw InvalidArgumentError(str(metric, ": thresholds are empty; it needs one or more"));
  }
  for (const double threshold : thresholds) {
    if (threshold >= 0 && threshold <= 1) continue;
    throw InvalidArgumentError(
        str(metric, ": a threshold is ", threshold, "; each must lie in [0, 1]"));
  }
}

ConfusionData match_confusion(const ConfusionData& data, const ConfusionSelection& selection,
                              DType dtype, const char* metric) {
  ConfusionData matched{data.labels, data.predictions.to(dtype), {}};
  squeeze_last_of_larger(matched.labels, matched.predictions);
  if (matched.labels.sizes() != matched.predictions.sizes()) {
    throw InvalidArgumentError(str(metric, ": labels ", describe(data.labels),
                                   " do not fit predictions ", describe(data.predictions)));
  }
  if (selection.top_k) {
    matched.predictions = only_top_k(matched.predictions, *selection.top_k, metric);
  }
  if (selection.class_id) {
    const int64_t index = checked_index(*selection.class_id, matched.predictions, metric);
    matched.predictions = matched.predictions.select(-1, index).unsqueeze(-1);
    matched.labels = matched.labels.select(-1, index).unsqueeze(-1);
  }
  matched.labels = matched.labels.to(matched.predictions.device()).ne(0);
  if (data.weights.defined()) {
    matched.weights = broadcast_weights(data.weights.detach(), matched.predictions, metric)
                          .expand_as(matched.predictions);
  }
  return matched;
}

ConfusionCounts count_confusion(const ConfusionData& data, const Thresholds& thresholds,
                                int64_t columns) {
  const int64_t width = std::max<int64_t>(columns, 1);
  const int64_t bins = thresholds.size() + 1;
  Tensor bin = thresholds.count_below(data.predictions) * width;
  if (columns > 0) bin = bin + at::arange(columns, bin.options());
  // In float64: a sum of float32 ones stops to grow at 2^24.
  const Tensor ones = data.weights.defined() ? data.weights.to(at::kDouble)
                                             : at::full_like(data.predictions, 1, at::kDouble);
  const auto histogram = [&](const Tensor& counted) {
    // bincount would make the host wait for the largest bin.
    return at::zeros({bins * width}, ones.options())
        .index_add_(0, bin.reshape({-1}), (ones * counted).reshape({-1}))
        .reshape({bins, width});
  };
  const auto above = [&](const Tensor& all) { return sums_from(all).slice(0, 1); };
  const Tensor positive = histogram(data.labels);
  const Tensor negative = histogram(data.labels.logical_not());
  const Tensor true_positives = above(positive);
  const Tensor false_positives = above(negative);
  const auto finished = [&](const Tensor& counts) {
    const Tensor ordered = thresholds.in_program_order(counts);
    return columns > 0 ? ordered : ordered.squeeze(1);
  };
  return {finished(true_positives), finished(negative.sum(0, true) - false_positives),
          finished(false_positives), finished(positive.sum(0, true) - true_positives)};
}

Tensor divide_no_nan(const Tensor& a, const Tensor& b) {
  return at::where(b == 0, at::zeros_like(a), a / b);
}

}  // namespace cohort::internal
