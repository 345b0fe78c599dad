#include "cohort/cluster/rpc/tensor_header.h"

#include "cohort/core/bytes/varint.h"
#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"

namespace cohort::internal::rpc {
namespace {

enum TensorField : uint32_t { kType = 1, kShape = 2 };  // shape: packed, zigzag

}  // namespace

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

std::string encode_tensor_header(const TensorHeader& header, std::string_view what) {
  tensor_bytes(header, what);
  std::string shape;
  for (const int64_t size : header.shape) append_signed_varint(shape, size);
  WireWriter fields;
  fields.varint(kType, static_cast<uint64_t>(header.type));
  if (!shape.empty()) fields.bytes(kShape, shape);
  return fields.str();
}

TensorHeader decode_tensor_header(std::string_view bytes, std::string_view what) {
  TensorHeader header;
  WireReader fields(bytes, std::string(what));
  bool has_type = false;
  while (fields.next()) {
    if (fields.field() == kType) {
      const uint64_t type = fields.varint();
      if (type > UINT8_MAX) throw InvalidArgumentError(str(what, ": no elements have type ", type));
      header.type = static_cast<ElementType>(type);
      has_type = true;
    } else if (fields.field() == kShape) {
      header.shape.clear();
      for (std::string_view packed = fields.bytes(); !packed.empty();) {
        header.shape.push_back(take_signed_varint(packed));
        if (header.shape.size() > kMaxTensorRank) break;  // which tensor_bytes refuses
      }
    }
  }
  if (!has_type) fields.fail("it has no type of elements");
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
