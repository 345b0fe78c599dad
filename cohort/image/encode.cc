#include "cohort/image/encode.h"

#include <ATen/ops/empty.h>

#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/image/codecs/jpeg_encoder.h"
#include "cohort/image/codecs/png_encoder.h"

namespace cohort::io {
namespace {

using internal::describe;
using internal::PictureShape;
using internal::str;

PictureShape shape_to_encode(const char* operation, const Tensor& image, int64_t most_channels) {
  if (!image.defined() || image.dim() != 3 || image.numel() == 0 || image.size(2) > most_channels) {
    throw InvalidArgumentError(str(operation, " takes an image [height, width, channels] of 1 to ",
                                   most_channels, " channels, but got ", describe(image)));
  }
  return {image.size(0), image.size(1), image.size(2)};
}

void check_range(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return;
  throw InvalidArgumentError(
      str("io::encode_jpeg: ", name, " is ", value, "; it must be from ", least, " to ", most));
}

// The bytes in order, on the host.
Tensor host_elements(const Tensor& image) { return internal::contiguous_elements(image.cpu()); }

}  // namespace

std::string encode_jpeg(const Tensor& image, const EncodeJpegOptions& options) {
  const PictureShape shape = shape_to_encode("io::encode_jpeg", image, 3);
  const int64_t wanted = options.format == "grayscale" ? 1
                         : options.format == "rgb"     ? 3
                         : options.format.empty()      ? shape.channels
                                                       : 0;
  if (wanted != shape.channels || shape.channels == 2 || image.scalar_type() != uint8) {
    throw InvalidArgumentError(
        str("io::encode_jpeg takes a uint8 image of 1 channel (format "
            "grayscale) or 3 (rgb), but got ",
            describe(image), " and format '", options.format, "'"));
  }
  check_range("quality", options.quality, 0, 100);
  check_range("x_density", options.x_density, 0, 65535);
  check_range("y_density", options.y_density, 0, 65535);
  if (options.density_unit != "in" && options.density_unit != "cm") {
    throw InvalidArgumentError(
        str("io::encode_jpeg: density_unit is '", options.density_unit, "'; it must be in or cm"));
  }
  const Tensor pixels = host_elements(image);
  return internal::encode_jpeg_file(pixels.data_ptr<uint8_t>(), shape,
                                    {.quality = static_cast<int>(options.quality),
                                     .progressive = options.progressive,
                                     .optimize_size = options.optimize_size,
                                     .chroma_downsampling = options.chroma_downsampling,
                                     .density_in_cm = options.density_unit == "cm",
                                     .x_density = static_cast<int>(options.x_density),
                                     .y_density = static_cast<int>(options.y_density),
                                     .xmp_metadata = options.xmp_metadata});
}

std::string encode_png(const Tensor& image, const EncodePngOptions& options) {
  const PictureShape shape = shape_to_encode("io::encode_png", image, 4);
  if (options.compression < -1 || options.compression > 9) {
    throw InvalidArgumentError(
        str("io::encode_png: compression is ", options.compression, "; it must be from -1 to 9"));
  }
  const auto compression = static_cast<int>(options.compression);
  const Tensor pixels = host_elements(image);
  if (pixels.scalar_type() == uint8) {
    return internal::encode_png_file(pixels.data_ptr<uint8_t>(), shape, compression);
  }
  if (pixels.scalar_type() != int32 || pixels.min().item<int64_t>() < 0 ||
      pixels.max().item<int64_t>() > 65535) {
    throw InvalidArgumentError(
        str("io::encode_png takes uint8, or int32 with numbers from 0 to "
            "65535, but got ",
            describe(image)));
  }
  const auto* const numbers = pixels.data_ptr<int32_t>();
  const std::vector<uint16_t> narrow(numbers, numbers + pixels.numel());
  return internal::encode_png_file(narrow.data(), shape, compression);
}

}  // namespace cohort::io
