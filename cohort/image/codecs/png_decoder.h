// PNG files as pixels, by libpng, with TensorFlow's settings.
//
//   PngDecoder decoder(bytes, {.channels = 3});
//   std::vector<uint8_t> pixels(decoder.shape().elements());
//   decoder.decode(pixels.data());
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "cohort/image/codecs/picture.h"

namespace cohort::internal {

struct PngDecoderOptions {
  int channels = 0;        // 0: the file's; 1 gray, 2 gray and alpha, 3 RGB, 4 RGB and alpha
  int64_t max_pixels = 0;  // check_pixels
};

// A file is decoded once.
// Thread safety: none.
class PngDecoder {
 public:
  // Reads the header; `contents` must live as long.
  // Errors: InvalidArgument (no PNG file, too many pixels).
  PngDecoder(std::string_view contents, const PngDecoderOptions& options);
  ~PngDecoder();

  // The shape of what decode writes.
  const PictureShape& shape() const { return shape_; }
  // Writes all numbers of the shape, row by row. As bytes those of 16 bits lose their lower half;
  // as 16 bits bytes are multiplied by 257. Errors: InvalidArgument (corrupt or cut short).
  void decode(uint8_t* out);
  void decode(uint16_t* out);

 private:
  struct State;
  void decode_rows(bool wide, uint8_t* out);
  std::unique_ptr<State> state_;
  PictureShape shape_;
};

}  // namespace cohort::internal
