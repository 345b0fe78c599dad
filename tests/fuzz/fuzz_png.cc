// Any bytes are a PNG picture of the shape that its header says, or an InvalidArgumentError; and what
// was decoded is encoded and decoded to the same numbers.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/image/codecs/png_decoder.h"
#include "cohort/image/codecs/png_encoder.h"

namespace {

using cohort::internal::PngDecoder;

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "fuzz_png: broken property: " << property << '\n';
  std::abort();
}

template <class T>
void check_decoding(std::string_view bytes, int channels) {
  PngDecoder decoder(bytes, {.channels = channels});
  const auto shape = decoder.shape();
  require(shape.height > 0 && shape.width > 0, "sides of pixels");
  require(channels == 0 ? shape.channels >= 1 && shape.channels <= 4 : shape.channels == channels,
          "the channels asked for");
  // A byte of pixels holds eight at most.
  require(shape.pixels() <= static_cast<int64_t>(bytes.size()) * 1032 * 8 + 65536,
          "no more pixels than the bytes can stand for");
  if (shape.pixels() > (1 << 22)) return;  // libpng's work, not ours
  std::vector<T> pixels(static_cast<size_t>(shape.elements()));
  decoder.decode(pixels.data());
  const std::string file = cohort::internal::encode_png_file(pixels.data(), shape, 1);
  PngDecoder second(file, {});
  std::vector<T> again(pixels.size());
  require(second.shape().elements() == shape.elements(), "the same shape after encoding");
  second.decode(again.data());
  require(again == pixels, "the same pixels after encoding");
}

}  // namespace

// The first byte chooses the channels and the width of numbers, so that all ways are tried.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const int channels = (data[0] & 7) % 5;
  try {
    if (data[0] & 8) {
      check_decoding<uint16_t>(bytes, channels);
    } else {
      check_decoding<uint8_t>(bytes, channels);
    }
  } catch (const cohort::InvalidArgumentError& error) {
    require(std::string_view(error.what()).find("png") != std::string_view::npos,
            "the error says what was decoded");
  }
  return 0;
}
