#include "cohort/collective/slices.h"

#include <algorithm>
#include <cstring>

#include "cohort/core/error.h"
#include "cohort/core/vector_clones.h"

namespace cohort::collective {
namespace {

constexpr int64_t kAlignment = 16;  // elements; a cache line of floats

// The accumulator of a dtype: itself, but for the short floats.
template <class T>
struct Accumulator {
  using type = T;
};
template <>
struct Accumulator<at::Half> {
  using type = float;
};
template <>
struct Accumulator<at::BFloat16> {
  using type = float;
};

template <class T>
COHORT_VECTOR_CLONES void add(void* out, std::span<const void* const> sources, int64_t count) {
  using Sum = typename Accumulator<T>::type;
  constexpr int64_t kBlock = 1024;
  Sum sums[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    std::fill_n(sums, size, Sum(0));
    bool first = true;
    for (const void* source : sources) {
      if (source == nullptr) continue;
      const T* values = static_cast<const T*>(source) + begin;
      if (first) {  // not 0 + x: that would turn -0 into 0
        for (int64_t i = 0; i < size; ++i) sums[i] = static_cast<Sum>(values[i]);
        first = false;
      } else {
        for (int64_t i = 0; i < size; ++i) sums[i] += static_cast<Sum>(values[i]);
      }
    }
    T* target = static_cast<T*>(out) + begin;
    for (int64_t i = 0; i < size; ++i) target[i] = static_cast<T>(sums[i]);
  }
}

using AddFunction = void (*)(void*, std::span<const void* const>, int64_t);

AddFunction find_add(DType dtype) {
  switch (dtype) {
    case DType::Float:
      return add<float>;
    case DType::Double:
      return add<double>;
    case DType::Half:
      return add<at::Half>;
    case DType::BFloat16:
      return add<at::BFloat16>;
    case DType::Byte:
      return add<uint8_t>;
    case DType::Char:
      return add<int8_t>;
    case DType::Short:
      return add<int16_t>;
    case DType::Int:
      return add<int32_t>;
    case DType::Long:
      return add<int64_t>;
    default:
      return nullptr;
  }
}

AddFunction add_function(DType dtype) {
  if (const AddFunction function = find_add(dtype)) return function;
  throw InvalidArgumentError(internal::str("values of dtype ", internal::dtype_name(dtype),
                                           " cannot be added up over replicas; cast them first"));
}

}  // namespace

SliceRange slice_of(int64_t size, int rank, int count) {
  const auto bound = [&](int64_t part) {
    if (part >= count) return size;
    const int64_t exact = size / count * part + size % count * part / count;
    return std::min(size, exact / kAlignment * kAlignment);
  };
  return {bound(rank), bound(rank + 1)};
}

void check_can_add(DType dtype) { add_function(dtype); }

void add_slices(void* out, std::span<const void* const> sources, int64_t count, DType dtype) {
  add_function(dtype)(out, sources, count);
}

}  // namespace cohort::collective
