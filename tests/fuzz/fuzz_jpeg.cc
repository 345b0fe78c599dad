// Any bytes are a JPEG picture of the shape that its header says, or an InvalidArgumentError; and
// neither memory nor time is more than the bytes may cost.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/image/codecs/jpeg_decoder.h"

namespace {

using cohort::internal::CropWindow;
using cohort::internal::JpegDecoder;
using cohort::internal::JpegDecoderOptions;

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "fuzz_jpeg: broken property: " << property << '\n';
  std::abort();
}

// The first byte chooses how, so that all ways are tried.
JpegDecoderOptions options_of(uint8_t choice) {
  constexpr int kChannels[] = {0, 1, 3, 0};
  JpegDecoderOptions options = {.channels = kChannels[choice & 3],
                                .ratio = 1 << (choice >> 2 & 3),
                                .fancy_upscaling = (choice & 16) != 0,
                                .try_recover_truncated = (choice & 32) != 0,
                                .acceptable_fraction = 0.5f};
  if (choice & 64) options.dct_method = cohort::internal::DctMethod::kIntegerAccurate;
  if (choice & 128) options.crop = CropWindow{1, 2, 3, 5};
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const JpegDecoderOptions options = options_of(data[0]);
  try {
    JpegDecoder decoder(bytes, options);
    const auto& shape = decoder.shape();
    require(shape.height > 0 && shape.width > 0, "sides of pixels");
    require(shape.channels == 1 || shape.channels == 3, "one channel or three");
    require(options.crop || decoder.stored().pixels() <= static_cast<int64_t>(size) * 1024 + 65536,
            "no more pixels than the bytes can stand for");
    if (decoder.stored().pixels() > (1 << 22)) return 0;  // libjpeg's work, not ours
    std::vector<uint8_t> pixels(static_cast<size_t>(shape.elements()));
    decoder.decode(pixels.data());
  } catch (const cohort::InvalidArgumentError& error) {
    require(std::string_view(error.what()).find("jpeg") != std::string_view::npos,
            "the error says what was decoded");
  }
  return 0;
}
