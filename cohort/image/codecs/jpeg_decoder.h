// JPEG files as pixels, by libjpeg-turbo, with TensorFlow's settings.
//
//   JpegDecoder decoder(bytes, {.channels = 3});
//   std::vector<uint8_t> pixels(decoder.shape().elements());
//   decoder.decode(pixels.data());
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "cohort/image/codecs/picture.h"

namespace cohort::internal {

enum class DctMethod { kIntegerFast, kIntegerAccurate };

struct CropWindow {
  int64_t y = 0;
  int64_t x = 0;
  int64_t height = 0;
  int64_t width = 0;
};

struct JpegDecoderOptions {
  int channels = 0;  // 0: the file's (3 of four), 1 or 3
  int ratio = 1;     // by which the sides are divided: 1, 2, 4 or 8
  bool fancy_upscaling = true;
  bool try_recover_truncated = false;
  float acceptable_fraction = 1;
  DctMethod dct_method = DctMethod::kIntegerFast;
  std::optional<CropWindow> crop = {};
  int64_t max_pixels = 0;  // check_pixels; below 0: any number, of what is not decoded
};

// A file is decoded once.
// Thread safety: none.
class JpegDecoder {
 public:
  // Reads the header; `contents` must live as long.
  // Errors: InvalidArgument (no JPEG file, too many pixels, a window that does not lie in the
  // picture).
  JpegDecoder(std::string_view contents, const JpegDecoderOptions& options);
  ~JpegDecoder();

  // The shape of what decode writes.
  const PictureShape& shape() const { return shape_; }
  // The shape of the whole picture, as it is stored.
  const PictureShape& stored() const { return stored_; }
  // Writes all pixels of the shape, row by row.
  // Errors: InvalidArgument (corrupt or cut short; more scans than any program writes, which would
  // take long).
  void decode(uint8_t* out);

 private:
  struct State;
  std::unique_ptr<State> state_;
  JpegDecoderOptions options_;
  PictureShape shape_, stored_;
};

// JpegDecoder::stored. Errors: InvalidArgument.
PictureShape jpeg_shape(std::string_view contents);

}  // namespace cohort::internal
