// Any bytes are either a tensor's header within the limits, which is written again as it was read,
// or an error that names where they came from.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "cohort/cluster/rpc/tensor_header.h"
#include "cohort/core/error.h"

namespace {

namespace rpc = cohort::internal::rpc;

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "fuzz_tensor: broken property: " << property << '\n';
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const rpc::TensorHeader header =
        rpc::decode_tensor_header({reinterpret_cast<const char*>(data), size}, "input");
    require(header.shape.size() <= rpc::kMaxTensorRank, "few dimensions");
    const uint64_t bytes = rpc::tensor_bytes(header, "input");
    require(bytes <= rpc::kMaxTensorBytes, "no more bytes than the limit");
    uint64_t expected = rpc::element_bytes(header.type);
    for (const int64_t dimension : header.shape) {
      require(dimension >= 0, "no negative dimension");
      require(!__builtin_mul_overflow(expected, static_cast<uint64_t>(dimension), &expected),
              "no product that overflows");
      require(expected <= rpc::kMaxTensorBytes, "no product above the limit");
    }
    require(bytes == expected, "the bytes are the product of the shape");
    const std::string again = rpc::encode_tensor_header(header, "input");
    require(rpc::decode_tensor_header(again, "input") == header, "written as it was read");
  } catch (const cohort::Error& error) {
    require(
        error.code() == cohort::Code::kDataLoss || error.code() == cohort::Code::kInvalidArgument,
        "an error of the two classes");
  }
  return 0;
}
