#include "cohort/image/jpeg_quality.h"

#include <string>

#include "cohort/image/color.h"
#include "cohort/image/decode.h"
#include "cohort/image/encode.h"

namespace cohort::image {

Tensor adjust_jpeg_quality(const Tensor& image, int64_t jpeg_quality) {
  const Tensor bytes = convert_image_dtype(image, uint8, /*saturate=*/true);
  const std::string file = io::encode_jpeg(bytes, {.quality = jpeg_quality});
  const Tensor pixels =
      io::decode_jpeg(file, {.channels = image.size(-1), .max_pixels = image.numel()});
  return convert_image_dtype(pixels.to(image.device()), image.scalar_type(), /*saturate=*/true);
}

}  // namespace cohort::image
