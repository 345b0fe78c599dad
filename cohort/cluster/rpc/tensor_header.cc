#include "cohort/cluster/rpc/tensor_header.h"

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"

namespace cohort::internal::rpc {

size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kUInt8:
    case ElementType::kInt8:
    case ElementType::kBool:
      return 1;
    case ElementType::kInt16:
    case ElementType::kBFloat16:
    case ElementType::kFloat16:
      return 2;
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kFloat64:
    case ElementType::kInt64:
    case ElementType::kComplex64:
      return 8;
    case ElementType::kComplex128:
      return 16;
  }
  return 0;
}

uint64_t tensor_bytes(const TensorHeader& header, std::string_view what) {
  uint64_t bytes = element_bytes(header.type);
  if (bytes == 0) {
    throw InvalidArgumentError(
        str(what, ": no elements have type ", static_cast<int>(header.type)));
  }
  if (header.shape.size() > kMaxTensorRank) {
    throw InvalidArgumentError(str(what, ": a tensor has at most ", kMaxTensorRank,
                                   " dimensions, not ", header.shape.size()));
  }
  bool is_empty = false;
  for (const int64_t size : header.shape) {
    if (size < 0) throw InvalidArgumentError(str(what, ": a dimension has size ", size));
    is_empty |= size == 0;
    // A dimension without elements does not excuse the others: [2^62, 2^62, 0] is refused.
    if (size > 0 && bytes > kMaxTensorBytes / static_cast<uint64_t>(size)) {
      throw InvalidArgumentError(
          str(what, ": a tensor has at most ", kMaxTensorBytes, " bytes; its shape asks for more"));
    }
    if (size > 0) bytes *= static_cast<uint64_t>(size);
  }
  return is_empty ? 0 : bytes;
}

void fields(auto& f, TensorHeader& header) {
  f(1, header.type, ElementType::kFloat16);
  f(2, header.shape);
}

std::string encode_tensor_header(const TensorHeader& header, std::string_view what) {
  tensor_bytes(header, what);
  return encode_fields(header);
}

TensorHeader decode_tensor_header(std::string_view bytes, std::string_view what) {
  auto header = decode_fields<TensorHeader>(bytes, what);
  if (header.type == ElementType{}) throw DataLossError(str(what, ": it has no type of elements"));
  tensor_bytes(header, what);
  return header;
}

void check_tensor_bytes(const TensorHeader& header, uint64_t bytes, std::string_view what) {
  const uint64_t expected = tensor_bytes(header, what);
  if (bytes == expected) return;
  throw InvalidArgumentError(
      str(what, ": its shape asks for ", expected, " bytes, and ", bytes, " came"));
}

}  // namespace cohort::internal::rpc
