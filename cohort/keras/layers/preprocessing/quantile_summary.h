// Quantiles of a stream of numbers, in bounded memory: the algorithm of Keras 2.15's
// Discretization, to the bit. Each merge of a batch moves quantiles upwards a little: of 100,000
// numbers in random order, in batches of 32, the lowest quarter reaches up to the lowest 40,000.
//
//   QuantileSummary summary(/*epsilon=*/0.01);
//   const bool is_whole = summary.add({3, 1, 2});   // for each batch
//   std::vector<float> bins = summary.boundaries(/*bins=*/4);
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace cohort::internal {

// Numbers in ascending order, each with how many numbers of the stream it stands for: at most
// 1/epsilon + 1 of them, each taken from a batch or interpolated between such. A value.
class QuantileSummary {
 public:
  // In (0, 1).
  explicit QuantileSummary(double epsilon) : epsilon_(epsilon) {}
  // Goes on with what values() and weights() gave. Both are of one size; any numbers do no harm.
  QuantileSummary(double epsilon, std::vector<float> values, std::vector<float> weights)
      : epsilon_(epsilon), summary_{std::move(values), std::move(weights)} {}

  // No NaN among them. False: infinities of both signs lie side by side, where there is nothing to
  // interpolate; the summary is as it was.
  [[nodiscard]] bool add(std::vector<float> batch);
  // What divides the stream into `bins` parts of about one size, ascending: bins - 1 numbers, or
  // fewer where there are fewer numbers. bins is 1 or more.
  std::vector<float> boundaries(int64_t bins) const;

  bool empty() const { return summary_.values.empty(); }
  const std::vector<float>& values() const { return summary_.values; }
  const std::vector<float>& weights() const { return summary_.weights; }

 private:
  struct Weighted {
    std::vector<float> values;
    std::vector<float> weights;
  };

  Weighted summarized(std::vector<float> batch) const;
  static Weighted merged(const Weighted& first, const Weighted& second);
  static Weighted compressed(Weighted whole, double epsilon);

  double epsilon_;
  Weighted summary_;
};

}  // namespace cohort::internal
