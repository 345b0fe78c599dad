#include "cohort/train/bundle/value_bytes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <cstdlib>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

struct Pair {
  DType dtype;
  BundleType type;
};
constexpr Pair kPairs[] = {
    {DType::Float, BundleType::kFloat32},
    {DType::Double, BundleType::kFloat64},
    {DType::Int, BundleType::kInt32},
    {DType::Byte, BundleType::kUint8},
    {DType::Short, BundleType::kInt16},
    {DType::Char, BundleType::kInt8},
    {DType::ComplexFloat, BundleType::kComplex64},
    {DType::Long, BundleType::kInt64},
    {DType::Bool, BundleType::kBool},
    {DType::BFloat16, BundleType::kBfloat16},
    {DType::ComplexDouble, BundleType::kComplex128},
    {DType::Half, BundleType::kFloat16},
};

}  // namespace

BundleType bundle_type(DType dtype) {
  for (const Pair& pair : kPairs) {
    if (pair.dtype == dtype) return pair.type;
  }
  throw UnimplementedError(str("checkpoints cannot hold tensors of dtype ", dtype_name(dtype)));
}

DType dtype_of(BundleType type) {
  for (const Pair& pair : kPairs) {
    if (pair.type == type) return pair.dtype;
  }
  return DType::Undefined;
}

Tensor empty_for_reading(at::IntArrayRef shape, DType dtype) {
  constexpr size_t kHugePageBytes = size_t{2} << 20;
  constexpr size_t kLargeBytes = size_t{8} << 20;
  size_t bytes = c10::elementSize(dtype);
  for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
  if (bytes < kLargeBytes) return at::empty(shape, dtype);
  const size_t rounded = (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  void* memory = std::aligned_alloc(kHugePageBytes, rounded);
  if (memory == nullptr) return at::empty(shape, dtype);  // whose error names the size
  ::madvise(memory, rounded, MADV_HUGEPAGE);              // a wish
  return at::from_blob(
      memory, shape, [](void* unused) { std::free(unused); }, dtype);
}

std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace cohort::internal
