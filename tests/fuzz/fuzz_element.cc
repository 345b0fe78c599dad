// Any bytes are an element or a DataLossError; and what was read is written as bytes that are read
// as the same. Links libtorch, unlike the others: the codec's result is tensors, whose shapes and
// indices are part of what must be checked.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/structure/structure.h"
#include "cohort/data/storage/element_codec.h"

namespace {

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "fuzz_element: broken property: " << property << '\n';
  std::abort();
}

// Bytes of the values, which the input must account for.
size_t bytes_of(const cohort::Structure& element) {
  size_t bytes = 0;
  element.for_each([&](const cohort::Leaf& leaf) {
    if (leaf.is_strings()) {
      for (int64_t i = 0; i < leaf.strings().numel(); ++i) bytes += leaf.strings()[i].size();
      return;
    }
    const cohort::Tensor& tensor = leaf.tensor();
    const bool dense = tensor.layout() == at::kStrided;
    bytes += dense ? tensor.nbytes() : tensor._indices().nbytes() + tensor._values().nbytes();
  });
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const cohort::Structure element = cohort::internal::decode_element(bytes, "fuzz");
    require(bytes_of(element) <= size, "no more values than bytes");
    const std::string written = cohort::internal::encode_element(element);
    require(written.size() <= size, "numbers are written in their shortest form");
    const cohort::Structure again = cohort::internal::decode_element(written, "again");
    require(!element.first_difference(again), "what was written has the form of what was read");
    require(cohort::internal::encode_element(again) == written, "what was written reads as it was");
  } catch (const cohort::DataLossError&) {
    // Not an element.
  }
  return 0;
}
