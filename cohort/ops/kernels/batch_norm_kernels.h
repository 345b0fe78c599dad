// Loops of batch normalization over rows of channels, without gaps, on the calling thread.
#pragma once

#include <cstdint>
#include <vector>

namespace cohort::internal {

// How many rows there are, and of each channel the mean and the sum of squared differences from it.
struct Moments {
  explicit Moments(int64_t channels)
      : mean(static_cast<size_t>(channels)), squares(static_cast<size_t>(channels)) {}

  int64_t rows = 0;
  std::vector<double> mean;
  std::vector<double> squares;
};

// Adds rows: block by block, each by its own mean, so that no digit of a small variance is lost.
void add_moments(const float* x, int64_t rows, int64_t channels, Moments& moments);
// Adds those of other rows (Chan, Golub and LeVeque, 1979).
void merge_moments(const Moments& other, Moments& moments);

// What a channel is normalized by: (x - mean) * scale + offset.
struct Normalizer {
  const float* mean;
  const float* scale;
  const float* offset;
};
void normalize_rows(const Normalizer& by, const float* x, int64_t rows, int64_t channels, float* y);

// Adds each channel's sum of `gradient`, and of gradient * (x - mean), to sums[channels] and
// products[channels].
void add_gradient_sums(const float* x, const float* mean, const float* gradient, int64_t rows,
                       int64_t channels, double* sums, double* products);

// The gradient of x: gradient * scale - constant - (x - mean) * slope.
struct InputGradient {
  const float* mean;
  const float* scale;
  const float* constant;
  const float* slope;
};
void normalization_gradient_rows(const InputGradient& by, const float* x, const float* gradient,
                                 int64_t rows, int64_t channels, float* result);

}  // namespace cohort::internal
