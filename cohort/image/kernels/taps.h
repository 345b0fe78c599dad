// The weights of a row or column's elements in each element of a resized one:
// what TensorFlow's kernels compute for one axis, in float32 and in their order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cohort::internal::image {

enum class ResizeMethod {
  kBilinear,
  kNearest,
  kBicubic,
  kArea,
  kLanczos3,
  kLanczos5,
  kGaussian,
  kMitchellCubic
};

// Output i is the sum of weight(i)[k] * input[first(i) + k] for k below count(i).
struct Taps {
  int64_t most = 0;  // of the counts
  std::vector<int64_t> first;
  std::vector<int64_t> count;
  std::vector<float> weights;  // `most` an output

  int64_t size() const { return static_cast<int64_t>(first.size()); }
  const float* weights_of(int64_t i) const { return weights.data() + i * most; }
};

// Output i is input[lower] + (input[upper] - input[lower]) * lerp.
struct Lerp {
  std::vector<int64_t> lower, upper;
  std::vector<float> lerp;
};

Lerp bilinear_axis(int64_t in, int64_t out);
// The nearest input of each output.
std::vector<int64_t> nearest_axis(int64_t in, int64_t out);
// Taps of every method but kNearest and, where it does not blur, kBilinear.
Taps taps_of_axis(ResizeMethod method, bool antialias, int64_t in, int64_t out);
// The same as a Lerp in the form of Taps.
Taps taps_of(const Lerp& lerp);

}  // namespace cohort::internal::image
