// Reads past the end of an input that begins with "idx": the fuzzer must find that.
#include <cstddef>
#include <cstdint>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> bytes(data, data + size);
  if (size >= 3 && bytes[0] == 'i' && bytes[1] == 'd' && bytes[2] == 'x') {
    volatile uint8_t past_the_end = bytes.data()[size];
    (void)past_the_end;
  }
  return 0;
}
