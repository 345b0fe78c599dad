// Every step is done in the precision in which Keras does it, float32 with TensorFlow and float64
// with NumPy, so that the boundaries are the same numbers.
#include "cohort/keras/layers/preprocessing/quantile_summary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace cohort::internal {
namespace {

// numpy.interp: the value at x of the line through the points (xs[i], ys[i]), which ends level.
double interpolated(double x, const std::vector<float>& xs, const std::vector<float>& ys) {
  if (x < xs.front()) return ys.front();
  const auto above = std::upper_bound(xs.begin(), xs.end(), x);
  const auto i = static_cast<size_t>(above - xs.begin()) - 1;
  if (i + 1 == xs.size() || xs[i] == x) return ys[i];
  const double left = ys[i], right = ys[i + 1];
  const double slope = (right - left) / (double{xs[i + 1]} - double{xs[i]});
  const double found = slope * (x - xs[i]) + left;
  if (!std::isnan(found)) return found;
  // An end that is infinite says nothing, but the other one may.
  const double from_right = slope * (x - xs[i + 1]) + right;
  return std::isnan(from_right) && left == right ? left : from_right;
}

bool is_nan(float value) { return std::isnan(value); }

}  // namespace

bool QuantileSummary::add(std::vector<float> batch) {
  Weighted together = compressed(merged(summarized(std::move(batch)), summary_), epsilon_);
  if (std::any_of(together.values.begin(), together.values.end(), is_nan)) return false;
  summary_ = std::move(together);
  return true;
}

std::vector<float> QuantileSummary::boundaries(int64_t bins) const {
  std::vector<float> values = compressed(summary_, 1.0 / static_cast<double>(bins)).values;
  if (!values.empty()) values.pop_back();  // the largest number
  return values;
}

// Every n-th number of the batch in order, so that there are about 1/epsilon of them.
QuantileSummary::Weighted QuantileSummary::summarized(std::vector<float> batch) const {
  std::sort(batch.begin(), batch.end());
  const auto wanted = static_cast<float>(1.0 / epsilon_);
  const auto increment = static_cast<size_t>(static_cast<float>(batch.size()) / wanted);
  const size_t step = std::max<size_t>(increment, 1);
  Weighted chosen;
  for (size_t i = increment; i < batch.size(); i += step) chosen.values.push_back(batch[i]);
  chosen.weights.assign(chosen.values.size(), static_cast<float>(step));
  return chosen;
}

QuantileSummary::Weighted QuantileSummary::merged(const Weighted& first, const Weighted& second) {
  Weighted whole = first;
  whole.values.insert(whole.values.end(), second.values.begin(), second.values.end());
  whole.weights.insert(whole.weights.end(), second.weights.begin(), second.weights.end());
  std::vector<size_t> order(whole.values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return whole.values[a] < whole.values[b]; });
  Weighted sorted;
  for (const size_t i : order) {
    sorted.values.push_back(whole.values[i]);
    sorted.weights.push_back(whole.weights[i]);
  }
  return sorted;
}

// The numbers at the shares epsilon, 2 epsilon, .. of all that `whole` stands for.
QuantileSummary::Weighted QuantileSummary::compressed(Weighted whole, double epsilon) {
  const size_t size = whole.values.size();
  if (size == 0 || static_cast<double>(size) * epsilon < 1) return whole;
  std::vector<float> below(size);  // how many numbers lie up to each, and with it
  std::partial_sum(whole.weights.begin(), whole.weights.end(), below.begin());
  std::vector<float> shares(size);
  for (size_t i = 0; i < size; ++i) shares[i] = below[i] / below.back();

  const auto count = static_cast<size_t>(std::ceil(1.0 / epsilon));
  Weighted result;
  double before = 0;
  for (size_t i = 0; i < count; ++i) {
    const double share = epsilon + static_cast<double>(i) * epsilon;
    const double up_to = interpolated(share, shares, below);
    result.values.push_back(static_cast<float>(interpolated(share, shares, whole.values)));
    result.weights.push_back(static_cast<float>(up_to - before));
    before = up_to;
  }
  return result;
}

}  // namespace cohort::internal
