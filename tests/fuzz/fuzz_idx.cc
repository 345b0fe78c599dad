// Any bytes are either a whole IDX array or a DataLossError.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/keras/datasets/idx.h"

namespace {

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "fuzz_idx: broken property: " << property << '\n';
  std::abort();
}

// Deflate's own limit: no byte of a file stands for more bytes of data.
constexpr size_t kMostPerByte = 1032;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (int rank : {1, 3}) {
    try {
      const auto array = cohort::internal::parse_idx({data, size}, rank, "input");
      require(array.shape.size() == static_cast<size_t>(rank), "the rank asked for");
      size_t elements = 1;
      for (int64_t dimension : array.shape) {
        require(dimension >= 0, "no negative dimension");
        elements *= static_cast<size_t>(dimension);
      }
      require(elements == array.values.size(), "as many values as the shape says");
      require(elements <= size * kMostPerByte, "no more values than the bytes can stand for");
    } catch (const cohort::DataLossError& error) {
      require(std::string_view(error.what()).find("input") != std::string_view::npos,
              "the error names the file");
    }
  }
  return 0;
}
