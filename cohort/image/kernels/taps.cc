#include "cohort/image/kernels/taps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace cohort::internal::image {
namespace {

// Below this a sum of weights is nothing to divide by.
constexpr float kLeastSum = 1000.0f * std::numeric_limits<float>::min();

float input_per_output(int64_t in, int64_t out) {
  return static_cast<float>(in) / static_cast<float>(out);
}

// The place in the input of the middle of output i, from the middle of input 0.
float half_pixel(int64_t i, float scale) { return (static_cast<float>(i) + 0.5f) * scale - 0.5f; }

float lanczos(float x, float radius) {
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;  // the limit of sin(x) / x
  constexpr double kPi = std::numbers::pi;
  return static_cast<float>(radius * std::sin(kPi * x) * std::sin(kPi * x / radius) /
                            (kPi * kPi * x * x));
}

float gaussian(float x) {
  constexpr double kSigma = 0.5;
  return x >= 1.5f ? 0.0f : static_cast<float>(std::exp(-x * x / (2.0 * kSigma * kSigma)));
}

float triangle(float x) { return x < 1.0f ? 1.0f - x : 0.0f; }

float keys_cubic(float x) {
  if (x >= 2.0f) return 0;
  if (x >= 1.0f) return ((-0.5f * x + 2.5f) * x - 4.0f) * x + 2.0f;
  return ((1.5f * x - 2.5f) * x) * x + 1.0f;
}

float mitchell_cubic(float x) {
  if (x >= 2.0f) return 0;
  if (x >= 1.0f) return (((-7.0f / 18.0f) * x + 2.0f) * x - 10.0f / 3.0f) * x + 16.0f / 9.0f;
  return (((7.0f / 6.0f) * x - 2.0f) * x) * x + 8.0f / 9.0f;
}

float radius_of(ResizeMethod method) {
  switch (method) {
    case ResizeMethod::kBilinear:
      return 1.0f;
    case ResizeMethod::kLanczos3:
      return 3.0f;
    case ResizeMethod::kLanczos5:
      return 5.0f;
    case ResizeMethod::kGaussian:
      return 1.5f;
    default:
      return 2.0f;
  }
}

float kernel_of(ResizeMethod method, float x) {
  switch (method) {
    case ResizeMethod::kBilinear:
      return triangle(x);
    case ResizeMethod::kLanczos3:
      return lanczos(x, 3.0f);
    case ResizeMethod::kLanczos5:
      return lanczos(x, 5.0f);
    case ResizeMethod::kGaussian:
      return gaussian(x);
    case ResizeMethod::kMitchellCubic:
      return mitchell_cubic(x);
    default:
      return keys_cubic(x);
  }
}

Taps make_taps(int64_t out, int64_t most) {
  Taps taps;
  taps.most = most;
  taps.first.resize(static_cast<size_t>(out));
  taps.count.resize(static_cast<size_t>(out));
  taps.weights.resize(static_cast<size_t>(out * most));
  return taps;
}

// TensorFlow's ScaleAndTranslate, without a translation.
Taps scaled_taps(ResizeMethod method, bool antialias, int64_t in, int64_t out) {
  const float scale = static_cast<float>(out) / static_cast<float>(in);
  const float inverse = static_cast<float>(1.0 / scale);
  const float widening = antialias ? std::max(inverse, 1.0f) : 1.0f;
  const float radius = radius_of(method);
  const float one_over_widening = 1.0f / widening;
  Taps taps = make_taps(
      out, std::min<int64_t>(2 * static_cast<int64_t>(std::ceil(radius * widening)) + 1, in));
  for (int64_t i = 0; i < out; ++i) {
    const float middle = (static_cast<float>(i) + 0.5f) * inverse;
    if (middle < 0 || middle > static_cast<float>(in)) continue;
    const auto lowest = static_cast<int64_t>(std::ceil(middle - radius * widening - 0.5f));
    const auto highest = static_cast<int64_t>(std::floor(middle + radius * widening - 0.5f));
    const int64_t begin = std::clamp<int64_t>(lowest, 0, in - 1);
    const int64_t end = std::clamp<int64_t>(highest, 0, in - 1) + 1;
    float* const weights = taps.weights.data() + i * taps.most;
    const int64_t count = std::min(end - begin, taps.most);
    float sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      const float distance = static_cast<float>(begin + k) + 0.5f - middle;
      weights[k] = kernel_of(method, std::abs(distance * one_over_widening));
      sum += weights[k];
    }
    const bool sums = std::abs(sum) >= kLeastSum;
    const float one_over_sum = sums ? 1.0f / sum : 0.0f;
    for (int64_t k = 0; k < count; ++k) weights[k] = sums ? weights[k] * one_over_sum : 0.0f;
    taps.first[i] = begin;
    taps.count[i] = count;
  }
  return taps;
}

// The weights of Keys' cubic at multiples of 1/1024, of which TensorFlow takes the nearest.
constexpr int64_t kSteps = 1 << 10;

const std::array<float, (kSteps + 1) * 2>& cubic_table() {
  static const auto table = [] {
    constexpr double kA = -0.5;
    std::array<float, (kSteps + 1) * 2> values{};
    for (int64_t i = 0; i <= kSteps; ++i) {
      float x = static_cast<float>(static_cast<double>(i) * 1.0 / kSteps);
      values[i * 2] = static_cast<float>(((kA + 2) * x - (kA + 3)) * x * x + 1);
      x += 1.0f;
      values[i * 2 + 1] = static_cast<float>(((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA);
    }
    return values;
  }();
  return table;
}

Taps bicubic_taps(int64_t in, int64_t out) {
  const float scale = input_per_output(in, out);
  const auto& table = cubic_table();
  Taps taps = make_taps(out, std::min<int64_t>(4, in));
  for (int64_t i = 0; i < out; ++i) {
    const float place = half_pixel(i, scale);
    const auto base = static_cast<int64_t>(std::floor(place));
    const auto step = std::lrint((place - static_cast<float>(base)) * float{kSteps});
    const float four[] = {table[step * 2 + 1], table[step * 2], table[(kSteps - step) * 2],
                          table[(kSteps - step) * 2 + 1]};
    // Places outside of the image count nothing.
    const int64_t begin = std::max<int64_t>(base - 1, 0), end = std::min(base + 3, in);
    const int64_t skipped = begin - (base - 1);
    float sum = 0;
    for (int64_t k = 0; k < end - begin; ++k) sum += four[skipped + k];
    const float factor = std::abs(sum) >= kLeastSum ? 1.0f / sum : 1.0f;
    for (int64_t k = 0; k < end - begin; ++k) {
      taps.weights[i * taps.most + k] = four[skipped + k] * factor;
    }
    taps.first[i] = begin;
    taps.count[i] = std::max<int64_t>(end - begin, 0);
  }
  return taps;
}

// How much of each input an output covers, in inputs; their product is divided by the area later.
Taps area_taps(int64_t in, int64_t out) {
  const float scale = input_per_output(in, out);
  Taps taps = make_taps(out, static_cast<int64_t>(std::ceil(scale)) + 2);
  for (int64_t i = 0; i < out; ++i) {
    const float begin = static_cast<float>(i) * scale;
    const float end = static_cast<float>(i + 1) * scale;
    const auto first = static_cast<int64_t>(std::floor(begin));
    const auto last = static_cast<int64_t>(std::ceil(end));
    int64_t count = 0;
    const auto add = [&](int64_t at, float weight) {
      // Rounding may name an input beyond the last: it stands for that.
      const int64_t bounded = std::clamp<int64_t>(at, 0, in - 1);
      if (count == 0) taps.first[i] = bounded;
      const int64_t k = bounded - taps.first[i];
      taps.weights[i * taps.most + k] += weight;
      count = std::max(count, k + 1);
    };
    for (int64_t k = first; k < last; ++k) {
      const auto at = static_cast<float>(k), next = static_cast<float>(k + 1);
      if (at < begin) {
        add(k, next > end ? scale : next - begin);
      } else {
        add(k, next > end ? end - at : 1.0f);
      }
    }
    taps.count[i] = count;
  }
  return taps;
}

}  // namespace

Lerp bilinear_axis(int64_t in, int64_t out) {
  const float scale = input_per_output(in, out);
  Lerp axis;
  for (int64_t i = 0; i < out; ++i) {
    const float place = half_pixel(i, scale), below = std::floor(place);
    axis.lower.push_back(std::max<int64_t>(static_cast<int64_t>(below), 0));
    axis.upper.push_back(std::min<int64_t>(static_cast<int64_t>(std::ceil(place)), in - 1));
    axis.lerp.push_back(place - below);
  }
  return axis;
}

std::vector<int64_t> nearest_axis(int64_t in, int64_t out) {
  const float scale = input_per_output(in, out);
  std::vector<int64_t> nearest;
  for (int64_t i = 0; i < out; ++i) {
    const float place = (static_cast<float>(i) + 0.5f) * scale;
    nearest.push_back(std::clamp<int64_t>(static_cast<int64_t>(std::floor(place)), 0, in - 1));
  }
  return nearest;
}

Taps taps_of_axis(ResizeMethod method, bool antialias, int64_t in, int64_t out) {
  if (method == ResizeMethod::kArea) return area_taps(in, out);
  if (method == ResizeMethod::kBicubic && !antialias) return bicubic_taps(in, out);
  return scaled_taps(method, antialias, in, out);
}

Taps taps_of(const Lerp& lerp) {
  const auto out = static_cast<int64_t>(lerp.lerp.size());
  Taps taps = make_taps(out, 2);
  for (int64_t i = 0; i < out; ++i) {
    const bool two = lerp.upper[i] > lerp.lower[i];
    taps.first[i] = lerp.lower[i];
    taps.count[i] = two ? 2 : 1;
    taps.weights[i * 2] = two ? 1.0f - lerp.lerp[i] : 1.0f;
    if (two) taps.weights[i * 2 + 1] = lerp.lerp[i];
  }
  return taps;
}

}  // namespace cohort::internal::image
