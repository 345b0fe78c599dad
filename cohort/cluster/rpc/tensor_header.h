// Describes a tensor in a message before its bytes: the type of its elements and its shape. The
// bytes themselves travel as bulk, row-major, little endian.
//
//   const TensorHeader header = decode_tensor_header(field, "argument 0 of 'step'");
//   check_tensor_bytes(header, message.bulk[0].size, "argument 0 of 'step'");
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::internal::rpc {

// The numbers are those of TensorFlow's DataType.
enum class ElementType : uint8_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kUInt8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kBFloat16 = 14,
  kComplex128 = 18,
  kFloat16 = 19,
};
// 0 for a number that is none of these.
size_t element_bytes(ElementType type);

inline constexpr size_t kMaxTensorRank = 8;
inline constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 40;

struct TensorHeader {
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> shape;  // of at most kMaxTensorRank dimensions

  bool operator==(const TensorHeader&) const = default;
};

// Errors of both: InvalidArgument (an unknown type, a negative dimension, too many of them, more
// than kMaxTensorBytes); the text begins with `what`. How many bytes the tensor has.
uint64_t tensor_bytes(const TensorHeader& header, std::string_view what);
std::string encode_tensor_header(const TensorHeader& header, std::string_view what);

// Errors: DataLoss (no header), InvalidArgument (as above).
TensorHeader decode_tensor_header(std::string_view bytes, std::string_view what);
// Errors: InvalidArgument (there are not exactly as many bytes as the header says).
void check_tensor_bytes(const TensorHeader& header, uint64_t bytes, std::string_view what);

}  // namespace cohort::internal::rpc
