// Pixels as a JPEG file, by libjpeg-turbo, with TensorFlow's settings.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/image/codecs/picture.h"

namespace cohort::internal {

struct JpegEncoderOptions {
  int quality = 95;
  bool progressive = false;
  bool optimize_size = false;
  bool chroma_downsampling = true;
  bool density_in_cm = false;  // else in inches
  int x_density = 300;
  int y_density = 300;
  std::string xmp_metadata = "";
};

// The file of pixels of one channel or three, row by row. Errors: InvalidArgument (a side above
// 65,500), Internal.
std::string encode_jpeg_file(const uint8_t* pixels, const PictureShape& shape,
                             const JpegEncoderOptions& options);

}  // namespace cohort::internal
