#include "cohort/train/value_bytes.h"

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

struct Pair {
  DType dtype;
  BundleType type;
};
constexpr Pair kPairs[] = {
    {DType::Float, BundleType::kFloat32},           {DType::Double, BundleType::kFloat64},
    {DType::Int, BundleType::kInt32},               {DType::Byte, BundleType::kUint8},
    {DType::Short, BundleType::kInt16},             {DType::Char, BundleType::kInt8},
    {DType::ComplexFloat, BundleType::kComplex64},  {DType::Long, BundleType::kInt64},
    {DType::Bool, BundleType::kBool},               {DType::BFloat16, BundleType::kBfloat16},
    {DType::ComplexDouble, BundleType::kComplex128}, {DType::Half, BundleType::kFloat16},
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

std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace cohort::internal
