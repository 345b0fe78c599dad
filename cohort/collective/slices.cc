#include "cohort/collective/slices.h"

#include <c10/util/SmallVector.h>
#include <c10/util/complex.h>

#include <algorithm>

#include "cohort/core/cpu/vector_clones.h"
#include "cohort/core/error.h"

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

// Few sources are read side by side and added in registers. An element depends on those of its own
// index only, also where `out` is one of the sources.
template <class T, int kSources>
COHORT_VECTOR_CLONES void add_few(T* out, const T* const* all, int64_t count) {
  const T* sources[kSources];
  std::copy_n(all, kSources, sources);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    auto sum = static_cast<typename Accumulator<T>::type>(sources[0][i]);
    for (int source = 1; source < kSources; ++source) sum += sources[source][i];
    out[i] = static_cast<T>(sum);
  }
}

template <class T>
COHORT_VECTOR_CLONES void add_many(T* out, std::span<const T* const> sources, int64_t count) {
  using Sum = typename Accumulator<T>::type;
  constexpr int64_t kBlock = 1024;
  Sum sums[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    std::fill_n(sums, size, Sum(0));
    bool first = true;
    for (const T* source : sources) {
      const T* values = source + begin;
      if (first) {  // not 0 + x: that would turn -0 into 0
        for (int64_t i = 0; i < size; ++i) sums[i] = static_cast<Sum>(values[i]);
        first = false;
      } else {
        for (int64_t i = 0; i < size; ++i) sums[i] += static_cast<Sum>(values[i]);
      }
    }
    T* target = out + begin;
    for (int64_t i = 0; i < size; ++i) target[i] = static_cast<T>(sums[i]);
  }
}

template <class T>
void add(void* out, std::span<const void* const> all, int64_t count) {
  c10::SmallVector<const T*, 8> sources;
  for (const void* source : all) {
    if (source != nullptr) sources.push_back(static_cast<const T*>(source));
  }
  T* target = static_cast<T*>(out);
  switch (sources.size()) {
    case 2:
      return add_few<T, 2>(target, sources.data(), count);
    case 3:
      return add_few<T, 3>(target, sources.data(), count);
    case 4:
      return add_few<T, 4>(target, sources.data(), count);
    default:
      return add_many<T>(target, {sources.data(), sources.size()}, count);
  }
}

template <class T, int kBuffers>
COHORT_VECTOR_CLONES void add_few_in_place(void* const* all, int64_t count) {
  T* buffers[kBuffers];
  for (int buffer = 0; buffer < kBuffers; ++buffer) buffers[buffer] = static_cast<T*>(all[buffer]);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    auto sum = static_cast<typename Accumulator<T>::type>(buffers[0][i]);
    for (int buffer = 1; buffer < kBuffers; ++buffer) sum += buffers[buffer][i];
    const T rounded = static_cast<T>(sum);
    for (int buffer = 0; buffer < kBuffers; ++buffer) buffers[buffer][i] = rounded;
  }
}

template <class T>
void add_in_place(std::span<void* const> buffers, int64_t count) {
  switch (buffers.size()) {
    case 2:
      return add_few_in_place<T, 2>(buffers.data(), count);
    case 3:
      return add_few_in_place<T, 3>(buffers.data(), count);
    case 4:
      return add_few_in_place<T, 4>(buffers.data(), count);
    default:
      break;
  }
  // Blocks that stay in the cache until they are copied.
  const int64_t block =
      std::max<int64_t>(1024, (256 << 10) / static_cast<int64_t>(sizeof(T) * buffers.size()));
  c10::SmallVector<const T*, 8> sources;
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t size = std::min(block, count - begin);
    sources.clear();
    for (const void* buffer : buffers) sources.push_back(static_cast<const T*>(buffer) + begin);
    T* sums = static_cast<T*>(buffers[0]) + begin;
    add_many<T>(sums, {sources.data(), sources.size()}, size);
    for (void* buffer : buffers.subspan(1))
      std::copy_n(sums, size, static_cast<T*>(buffer) + begin);
  }
}

struct AddFunctions {
  void (*add)(void*, std::span<const void* const>, int64_t) = nullptr;
  void (*add_in_place)(std::span<void* const>, int64_t) = nullptr;

  template <class T>
  static AddFunctions of() {
    return {collective::add<T>, collective::add_in_place<T>};
  }
};

AddFunctions find_add(DType dtype) {
  switch (dtype) {
    case DType::Float:
      return AddFunctions::of<float>();
    case DType::Double:
      return AddFunctions::of<double>();
    case DType::ComplexFloat:
      return AddFunctions::of<c10::complex<float>>();
    case DType::ComplexDouble:
      return AddFunctions::of<c10::complex<double>>();
    case DType::Half:
      return AddFunctions::of<at::Half>();
    case DType::BFloat16:
      return AddFunctions::of<at::BFloat16>();
    case DType::Byte:
      return AddFunctions::of<uint8_t>();
    case DType::Char:
      return AddFunctions::of<int8_t>();
    case DType::Short:
      return AddFunctions::of<int16_t>();
    case DType::Int:
      return AddFunctions::of<int32_t>();
    case DType::Long:
      return AddFunctions::of<int64_t>();
    default:
      return {};
  }
}

AddFunctions add_functions(DType dtype) {
  const AddFunctions functions = find_add(dtype);
  if (functions.add != nullptr) return functions;
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

void check_can_add(DType dtype) { add_functions(dtype); }

void add_slices(void* out, std::span<const void* const> sources, int64_t count, DType dtype) {
  add_functions(dtype).add(out, sources, count);
}

void add_slices_in_place(std::span<void* const> buffers, int64_t count, DType dtype) {
  add_functions(dtype).add_in_place(buffers, count);
}

}  // namespace cohort::collective
