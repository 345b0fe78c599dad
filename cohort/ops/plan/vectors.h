// Sixteen numbers at once, on any processor: GCC and clang make of it what registers there are.
#pragma once

#include <cstdint>
#include <cstring>

namespace cohort::internal::plan {

inline constexpr int64_t kVector = 16;
typedef float Floats __attribute__((vector_size(64)));
typedef int32_t Ints __attribute__((vector_size(64)));
typedef uint8_t Bytes __attribute__((vector_size(16)));
// Eight, for loops that keep as many sums as there are registers.
typedef float HalfFloats __attribute__((vector_size(32)));
typedef int32_t HalfInts __attribute__((vector_size(32)));

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

// Whether this processor has 32 registers of this size. Loops that keep many sums at once are
// slower than a library's where it has not.
inline bool has_wide_registers() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

}  // namespace cohort::internal::plan
