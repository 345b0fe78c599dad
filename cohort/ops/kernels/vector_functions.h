// Functions of many numbers at once, for loops of plans. NaN stays.
#pragma once

#include "cohort/ops/kernels/vectors.h"

namespace cohort::internal::plan {

template <class Vector>
struct IntsLike;
template <>
struct IntsLike<Floats> {
  using Type = Ints;
};
template <>
struct IntsLike<HalfFloats> {
  using Type = HalfInts;
};

template <class Vector>
COHORT_INLINE void clamp(float least, float most, Vector& x) {
  x = x < least ? Vector{} + least : x;
  x = x > most ? Vector{} + most : x;
}

// e^x within 2 units of the last place, for x from -87 to 88; beyond them that of the limit.
template <class Vector>
COHORT_INLINE void exponential(Vector& x) {
  using Whole = typename IntsLike<Vector>::Type;
  clamp(-87, 88, x);
  // x = n log 2 + rest. Added to this number, n is rounded and stands in the last bits.
  constexpr float kRound = 12582912;  // 1.5 * 2^23
  constexpr int32_t kRoundBits = 0x4B400000;
  const Vector shifted = x * 1.44269504088896341f + kRound;
  Whole power;
  load(reinterpret_cast<const char*>(&shifted), power);
  const Vector n = shifted - kRound;
  const Vector rest = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Vector sum = Vector{} + 1.9875691500e-4f;  // Cephes's expf
  sum = sum * rest + 1.3981999507e-3f;
  sum = sum * rest + 8.3334519073e-3f;
  sum = sum * rest + 4.1665795894e-2f;
  sum = sum * rest + 1.6666665459e-1f;
  sum = sum * rest + 5.0000001201e-1f;
  sum = sum * rest * rest + rest + 1.f;
  power = (power + (127 - kRoundBits)) << 23;
  Vector scale;
  load(reinterpret_cast<const char*>(&power), scale);
  x = sum * scale;
}

template <class Vector>
COHORT_INLINE void sigmoid(Vector& x) {
  x = -x;
  exponential(x);
  x = 1.f / (1.f + x);
}

// A quotient of polynomials, as in Eigen: within 4 units of the last place, near zero too.
template <class Vector>
COHORT_INLINE void hyperbolic_tangent(Vector& x) {
  clamp(-7.99881172180175781f, 7.99881172180175781f, x);  // where it rounds to 1
  const Vector square = x * x;
  Vector above = Vector{} - 2.76076847742355e-16f;
  above = above * square + 2.00018790482477e-13f;
  above = above * square - 8.60467152213735e-11f;
  above = above * square + 5.12229709037114e-08f;
  above = above * square + 1.48572235717979e-05f;
  above = above * square + 6.37261928875436e-04f;
  above = above * square + 4.89352455891786e-03f;
  Vector below = Vector{} + 1.19825839466702e-06f;
  below = below * square + 1.18534705686654e-04f;
  below = below * square + 2.26843463243900e-03f;
  below = below * square + 4.89352518554385e-03f;
  x = x * above / below;
}

// log(1 + e^x) = max(x, 0) + log(1 + t) with t = e^-|x|, and that by the series of 2 artanh(t / (2
// + t)).
template <class Vector>
COHORT_INLINE void softplus(Vector& x) {
  const Vector zero{};
  Vector t = x > zero ? -x : x;
  exponential(t);
  const Vector s = t / (t + 2.f);
  const Vector square = s * s;  // up to 1/9
  Vector sum = zero + 1.f / 13;
  sum = sum * square + 1.f / 11;
  sum = sum * square + 1.f / 9;
  sum = sum * square + 1.f / 7;
  sum = sum * square + 1.f / 5;
  sum = sum * square + 1.f / 3;
  sum = sum * square + 1.f;
  x = x > zero ? x : zero;
  x = x + 2.f * s * sum;
}

// The share of a normal distribution below x, (1 + erf(x / sqrt 2)) / 2. Its tail by Press et al.,
// Numerical Recipes, "erfcc": within 2e-7 of itself but for what exponential loses.
template <class Vector>
COHORT_INLINE void normal_share(Vector& x) {
  const Vector zero{};
  const Vector z = (x > zero ? x : -x) * 0.70710678118654752f;
  const Vector t = 1.f / (1.f + 0.5f * z);
  Vector power = zero + 0.17087277f;
  power = power * t - 0.82215223f;
  power = power * t + 1.48851587f;
  power = power * t - 1.13520398f;
  power = power * t + 0.27886807f;
  power = power * t - 0.18628806f;
  power = power * t + 0.09678418f;
  power = power * t + 0.37409196f;
  power = power * t + 1.00002368f;
  power = power * t - 1.26551223f;
  power = power - z * z;
  exponential(power);
  const Vector tail = 0.5f * t * power;
  x = x > zero ? 1.f - tail : tail;
}

}  // namespace cohort::internal::plan
