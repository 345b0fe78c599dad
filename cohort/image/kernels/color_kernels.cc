#include "cohort/image/kernels/color_kernels.h"

#include <algorithm>
#include <cmath>

#include "cohort/core/cpu/vector_clones.h"

namespace cohort::internal::image {
namespace {

struct Hsv {
  float h, s, v;
};

inline __attribute__((always_inline)) Hsv hsv_of(float r, float g, float b) {
  const float v = std::max(r, std::max(g, b));
  const float range = v - std::min(r, std::min(g, b));
  const float s = v > 0 ? range / v : 0.0f;
  const float norm = 1.0f / (6.0f * range);
  float h = r == v   ? norm * (g - b)
            : g == v ? norm * (b - r) + 2.0f / 6.0f
                     : norm * (r - g) + 4.0f / 6.0f;
  h = range > 0 ? h : 0.0f;
  return {h < 0 ? h + 1.0f : h, s, v};
}

inline __attribute__((always_inline)) float unit(float x) {
  return std::min(std::max(x, 0.0f), 1.0f);
}

inline __attribute__((always_inline)) void write_rgb(const Hsv& hsv, float* out) {
  const float turned = hsv.h * 6.0f;
  const float rest = 1.0f - hsv.s;
  out[0] = (rest + hsv.s * unit(std::abs(turned - 3.0f) - 1.0f)) * hsv.v;
  out[1] = (rest + hsv.s * unit(2.0f - std::abs(turned - 2.0f))) * hsv.v;
  out[2] = (rest + hsv.s * unit(2.0f - std::abs(turned - 4.0f))) * hsv.v;
}

// Hue in sixths of the circle, and the least and the greatest number, between which the third lies.
inline __attribute__((always_inline)) void turn_hue(const float* in, float delta, float* out) {
  const float r = in[0], g = in[1], b = in[2];
  const float most = std::max(r, std::max(g, b)), least = std::min(r, std::min(g, b));
  const float range = most - least;
  float h = r == most   ? (g - b) / range + (g < b ? 6.0f : 0.0f)
            : g == most ? (b - r) / range + 2.0f
                        : (r - g) / range + 4.0f;
  h = (range > 0 ? h : 0.0f) + delta;
  h = h < 0 ? h + 6.0f : h;
  h = h >= 6.0f ? h - 6.0f : h;
  out[0] = least + range * unit(std::abs(h - 3.0f) - 1.0f);
  out[1] = least + range * unit(2.0f - std::abs(h - 2.0f));
  out[2] = least + range * unit(2.0f - std::abs(h - 4.0f));
}

}  // namespace

COHORT_VECTOR_CLONES void rgb_to_hsv_pixels(const float* in, int64_t pixels, float* out) {
  for (int64_t i = 0; i < pixels; ++i) {
    const Hsv hsv = hsv_of(in[3 * i], in[3 * i + 1], in[3 * i + 2]);
    out[3 * i] = hsv.h;
    out[3 * i + 1] = hsv.s;
    out[3 * i + 2] = hsv.v;
  }
}

COHORT_VECTOR_CLONES void hsv_to_rgb_pixels(const float* in, int64_t pixels, float* out) {
  for (int64_t i = 0; i < pixels; ++i) {
    write_rgb({in[3 * i], in[3 * i + 1], in[3 * i + 2]}, out + 3 * i);
  }
}

COHORT_VECTOR_CLONES void adjust_hue_pixels(const float* in, int64_t pixels, float delta,
                                            float* out) {
  const float sixths = delta * 6.0f;
  for (int64_t i = 0; i < pixels; ++i) turn_hue(in + 3 * i, sixths, out + 3 * i);
}

COHORT_VECTOR_CLONES void adjust_saturation_pixels(const float* in, int64_t pixels, float factor,
                                                   float* out) {
  for (int64_t i = 0; i < pixels; ++i) {
    Hsv hsv = hsv_of(in[3 * i], in[3 * i + 1], in[3 * i + 2]);
    hsv.s = unit(hsv.s * factor);
    write_rgb(hsv, out + 3 * i);
  }
}

}  // namespace cohort::internal::image
