// Some numbers at once, on any processor: GCC and clang make of it what registers there are.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

namespace cohort::internal::plan {

// A register's: g++ keeps what is larger in memory. ARM64 has 32 registers of 4 numbers, as AVX-512
// has 32 of 16.
#ifdef __aarch64__
inline constexpr int64_t kVector = 4;
#else
inline constexpr int64_t kVector = 16;
#endif
typedef float Floats __attribute__((vector_size(4 * kVector)));
typedef int32_t Ints __attribute__((vector_size(4 * kVector)));
typedef uint8_t Bytes __attribute__((vector_size(kVector)));
// Half of them, for loops that keep as many sums as there are registers.
typedef float HalfFloats __attribute__((vector_size(2 * kVector)));
typedef int32_t HalfInts __attribute__((vector_size(2 * kVector)));

// For functions that are inlined into one that is compiled for several processors.
#define COHORT_INLINE inline __attribute__((always_inline))

template <class Vector, class T>
COHORT_INLINE void load(const T* from, Vector& to) {
  std::memcpy(&to, from, sizeof(to));
}
template <class Vector, class T>
COHORT_INLINE void store(const Vector& from, T* to) {
  std::memcpy(to, &from, sizeof(from));
}

// Swaps the squares of kStep x kStep numbers beside the diagonal.
template <int kStep, int... kIndices>
COHORT_INLINE void swap_squares(Floats (&block)[kVector], std::integer_sequence<int, kIndices...>) {
#pragma GCC unroll 16
  for (int i = 0; i < kVector; ++i) {
    if ((i & kStep) != 0) continue;
    const Floats low = block[i];
    const Floats high = block[i + kStep];
    constexpr auto kHigh = static_cast<int>(kVector);
    block[i] = __builtin_shufflevector(
        low, high, ((kIndices & kStep) != 0 ? kIndices - kStep + kHigh : kIndices)...);
    block[i + kStep] = __builtin_shufflevector(
        low, high, ((kIndices & kStep) != 0 ? kIndices + kHigh : kIndices + kStep)...);
  }
}

// Number j of vector i becomes number i of vector j.
COHORT_INLINE void transpose(Floats (&block)[kVector]) {
  constexpr auto kEach = std::make_integer_sequence<int, kVector>();
  if constexpr (kVector == 16) {
    swap_squares<8>(block, kEach);
    swap_squares<4>(block, kEach);
  }
  swap_squares<2>(block, kEach);
  swap_squares<1>(block, kEach);
}

// Whether this processor has 32 registers of this size. Loops that keep many sums at once are
// slower than a library's where it has not.
inline bool has_wide_registers() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

}  // namespace cohort::internal::plan
