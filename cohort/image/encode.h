// Tensors as files of pictures, as tf.io encodes them.
//
//   std::string file = tf::io::encode_jpeg(image, {.quality = 90});
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::io {

struct EncodeJpegOptions {
  std::string format = "";  // "grayscale" or "rgb"; "": by the number of channels
  int64_t quality = 95;     // 0 to 100
  bool progressive = false;
  bool optimize_size = false;  // takes longer
  bool chroma_downsampling = true;
  std::string density_unit = "in";  // or "cm"
  int64_t x_density = 300;
  int64_t y_density = 300;
  std::string xmp_metadata = "";
};
// Shape: image [height, width, 1 or 3], uint8. Errors: InvalidArgument (another image; an option
// that is out of range). Thread safety: any thread.
COHORT_API std::string encode_jpeg(const Tensor& image, const EncodeJpegOptions& options = {});

struct EncodePngOptions {
  int64_t compression = -1;  // zlib's level, 0 to 9; -1: its default
};
// Shape: image [height, width, 1 to 4]; uint8, or int32 of 16 bits. Errors: InvalidArgument
// (another image; a number that 16 bits do not hold). Thread safety: any thread.
COHORT_API std::string encode_png(const Tensor& image, const EncodePngOptions& options = {});

}  // namespace cohort::io
