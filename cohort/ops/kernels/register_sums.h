// Sums that stay in registers while they grow: products of a few rows with vectors side by side.
// For loops that are compiled for several processors, which best_of chooses from. Included by files
// of loops alone.
#pragma once

#include "cohort/ops/kernels/vectors.h"

// On x86-64 vectors have sixteen elements in 32 registers, or eight in 16; without either eight, in
// parts. On ARM64 they have four in 32.
#ifdef __x86_64__
#define COHORT_WIDE __attribute__((target("avx512f,avx512bw,avx512vl,avx2,fma")))
#define COHORT_HALF __attribute__((target("avx2,fma")))
#else
#define COHORT_WIDE
#define COHORT_HALF
#endif

namespace cohort::internal::plan {

inline bool has_half_registers() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

// The loop for vectors of `width` numbers: that of half vectors runs anywhere.
template <class Loop>
Loop* best_of(int64_t width, Loop* wide, Loop* half, Loop* plain) {
  if (width == kVector) return wide;
  return has_half_registers() ? half : plain;
}

inline int64_t round_up(int64_t number, int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

template <class Vector>
constexpr int64_t kWidth = sizeof(Vector) / sizeof(float);
// Rows at once: with four sums each, and what they are multiplied by, they fill the registers.
template <class Vector>
constexpr int kRows = kWidth<Vector> == kVector ? 6 : 3;
// Sums of a unit.
constexpr int kSums = 4;

// Some of a vector's numbers, where a row ends.
template <class Vector>
COHORT_INLINE void load_some(const float* from, int64_t count, Vector& to) {
  if (count == kWidth<Vector>) {
    load(from, to);
    return;
  }
  float numbers[kWidth<Vector>] = {};
  for (int64_t i = 0; i < count; ++i) numbers[i] = from[i];
  load(numbers, to);
}
template <class Vector>
COHORT_INLINE void store_some(const Vector& from, int64_t count, float* to) {
  if (count == kWidth<Vector>) {
    store(from, to);
    return;
  }
  float numbers[kWidth<Vector>];
  store(from, numbers);
  for (int64_t i = 0; i < count; ++i) to[i] = numbers[i];
}
template <class Vector>
COHORT_INLINE void load_or_zero(const float* from, int64_t offset, int64_t count, Vector& to) {
  to = Vector{};
  if (from != nullptr) load_some(from + offset, count, to);
}

struct Rows {
  const float* first = nullptr;
  int64_t distance = 0;
  int64_t length = 0;
};

// Adds the products of rows and kVectors panels side by side, the last of them to sum kLast.
template <class Vector, int kCount, int kVectors, int kLast>
COHORT_INLINE void add_products(const Rows& rows, const float* panel,
                                Vector (&sums)[kCount][kSums]) {
  for (int64_t k = 0; k < rows.length; ++k, panel += kVectors * kWidth<Vector>) {
    Vector factors[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) load(panel + v * kWidth<Vector>, factors[v]);
#pragma GCC unroll 6
    for (int r = 0; r < kCount; ++r) {
      const float number = rows.first[r * rows.distance + k];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v + 1 == kVectors ? kLast : v] += factors[v] * number;
      }
    }
  }
}

// The sums of a few rows, once they are complete.
template <class Vector>
using Block = Vector[kRows<Vector>][kSums];

template <class Vector, int kCount>
COHORT_INLINE void keep_sums(const Vector (&sums)[kCount][kSums], Block<Vector>& block) {
#pragma GCC unroll 6
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) block[r][s] = sums[r][s];
  }
}

}  // namespace cohort::internal::plan
