#include "cohort/train/safetensors/safetensors_dtype.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

struct Pair {
  BundleType type;
  const char* name;
};
constexpr Pair kPairs[] = {
    {BundleType::kFloat64, "F64"}, {BundleType::kFloat32, "F32"},   {BundleType::kFloat16, "F16"},
    {BundleType::kInt64, "I64"},   {BundleType::kBfloat16, "BF16"}, {BundleType::kInt32, "I32"},
    {BundleType::kInt16, "I16"},   {BundleType::kInt8, "I8"},       {BundleType::kUint64, "U64"},
    {BundleType::kUint32, "U32"},  {BundleType::kUint16, "U16"},    {BundleType::kUint8, "U8"},
    {BundleType::kBool, "BOOL"},   {BundleType::kComplex64, "C64"},
};

// Floating-point numbers of four, six and eight bits.
constexpr std::string_view kOtherTypes[] = {
    "F4", "F6_E2M3", "F6_E3M2", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ",
};

const char* find_name(BundleType type) {
  for (const Pair& pair : kPairs) {
    if (pair.type == type) return pair.name;
  }
  return nullptr;
}

}  // namespace

bool safetensors_can_hold(BundleType type) { return find_name(type) != nullptr; }

const char* safetensors_dtype(BundleType type, std::string_view tensor) {
  if (const char* name = find_name(type)) return name;
  throw InvalidArgumentError(str("tensor ", quoted(tensor), " is of type ", type_name(type),
                                 ", which safetensors files cannot hold"));
}

BundleType parse_safetensors_dtype(std::string_view name, std::string_view what) {
  for (const Pair& pair : kPairs) {
    if (pair.name == name) return pair.type;
  }
  for (const std::string_view other : kOtherTypes) {
    if (other == name) {
      throw UnimplementedError(str(what, ": dtype ", quoted(name), " cannot be read"));
    }
  }
  throw DataLossError(
      str(what, ": dtype ", quoted(name.substr(0, 40)), " is none of the format's"));
}

}  // namespace cohort::internal
