#include "cohort/image/decode.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/structure/row_memory.h"
#include "cohort/image/codecs/jpeg_decoder.h"
#include "cohort/image/codecs/png_decoder.h"
#include "cohort/image/color.h"

namespace cohort::io {
namespace {

using internal::dtype_name;
using internal::JpegDecoder;
using internal::PictureShape;
using internal::PngDecoder;
using internal::str;

internal::DctMethod dct_method(const std::string& name) {
  if (name.empty() || name == "INTEGER_FAST") return internal::DctMethod::kIntegerFast;
  if (name == "INTEGER_ACCURATE") return internal::DctMethod::kIntegerAccurate;
  throw InvalidArgumentError(str("io::decode_jpeg: there is no dct_method '", name,
                                 "'; there are INTEGER_FAST and INTEGER_ACCURATE"));
}

internal::JpegDecoderOptions decoder_options(const DecodeJpegOptions& options) {
  if (options.channels != 0 && options.channels != 1 && options.channels != 3) {
    throw InvalidArgumentError(
        str("io::decode_jpeg: channels is ", options.channels, "; it must be 0, 1 or 3"));
  }
  if (options.ratio != 1 && options.ratio != 2 && options.ratio != 4 && options.ratio != 8) {
    throw InvalidArgumentError(
        str("io::decode_jpeg: ratio is ", options.ratio, "; it must be 1, 2, 4 or 8"));
  }
  if (options.max_pixels < 0) {
    throw InvalidArgumentError(
        str("io::decode_jpeg: max_pixels is ", options.max_pixels, "; it must not be below 0"));
  }
  return {.channels = static_cast<int>(options.channels),
          .ratio = static_cast<int>(options.ratio),
          .fancy_upscaling = options.fancy_upscaling,
          .try_recover_truncated = options.try_recover_truncated,
          .acceptable_fraction = static_cast<float>(options.acceptable_fraction),
          .dct_method = dct_method(options.dct_method),
          .max_pixels = options.max_pixels};
}

// Decodes into the tensor's own memory, which is the batch's where one is made.
template <class T, class Decoder>
Tensor decoded(Decoder& decoder, DType dtype) {
  const PictureShape& shape = decoder.shape();
  Tensor pixels = internal::empty_result({shape.height, shape.width, shape.channels}, dtype);
  decoder.decode(static_cast<T*>(pixels.data_ptr()));
  return pixels;
}

bool begins_with(std::string_view bytes, std::string_view signature) {
  return bytes.substr(0, signature.size()) == signature;
}

}  // namespace

StringTensor read_file(const FileContents& path) {
  const auto file = internal::posix_file_system().open(std::string(path.bytes()));
  struct Contents {
    std::unique_ptr<char[]> bytes;
    std::string_view view;
  };
  const auto size = static_cast<size_t>(file->size());
  auto contents = std::make_shared<Contents>();
  contents->bytes.reset(new char[size]);  // not zeros first
  file->read(0, contents->bytes.get(), size);
  contents->view = {contents->bytes.get(), size};
  return StringTensor::over(contents, &contents->view, {});
}

Tensor decode_jpeg(const FileContents& contents, const DecodeJpegOptions& options) {
  JpegDecoder decoder(contents.bytes(), decoder_options(options));
  return decoded<uint8_t>(decoder, uint8);
}

Tensor decode_and_crop_jpeg(const FileContents& contents, const std::array<int64_t, 4>& crop_window,
                            const DecodeJpegOptions& options) {
  internal::JpegDecoderOptions decoding = decoder_options(options);
  decoding.crop = {crop_window[0], crop_window[1], crop_window[2], crop_window[3]};
  JpegDecoder decoder(contents.bytes(), decoding);
  return decoded<uint8_t>(decoder, uint8);
}

Tensor extract_jpeg_shape(const FileContents& contents, DType output_type) {
  if (output_type != int32 && output_type != int64) {
    throw InvalidArgumentError(str("io::extract_jpeg_shape: output_type is ",
                                   dtype_name(output_type), "; it must be int32 or int64"));
  }
  const PictureShape shape = internal::jpeg_shape(contents.bytes());
  return at::tensor({shape.height, shape.width, shape.channels}).to(output_type);
}

bool is_jpeg(const FileContents& contents) { return begins_with(contents.bytes(), "\xff\xd8\xff"); }

Tensor decode_png(const FileContents& contents, const DecodePngOptions& options) {
  if (options.channels < 0 || options.channels > 4) {
    throw InvalidArgumentError(
        str("io::decode_png: channels is ", options.channels, "; it must be 0, 1, 2, 3 or 4"));
  }
  if (options.dtype != uint8 && options.dtype != int32) {
    throw InvalidArgumentError(str("io::decode_png: dtype is ", dtype_name(options.dtype),
                                   "; it must be uint8, or int32 for 16 bits"));
  }
  PngDecoder decoder(contents.bytes(), {.channels = static_cast<int>(options.channels),
                                        .max_pixels = options.max_pixels});
  if (options.dtype == uint8) return decoded<uint8_t>(decoder, uint8);
  const PictureShape& shape = decoder.shape();
  Tensor pixels = internal::empty_result({shape.height, shape.width, shape.channels}, int32);
  std::vector<uint16_t> narrow(static_cast<size_t>(shape.elements()));
  decoder.decode(narrow.data());
  std::copy(narrow.begin(), narrow.end(), pixels.data_ptr<int32_t>());
  return pixels;
}

Tensor decode_image(const FileContents& contents, const DecodeImageOptions& options) {
  const bool floating = at::isFloatingType(options.dtype);
  if (!floating && options.dtype != uint8 && options.dtype != int32) {
    throw InvalidArgumentError(str("io::decode_image: dtype is ", dtype_name(options.dtype),
                                   "; it must be uint8, int32 (for 16 bits) or floating"));
  }
  const std::string_view bytes = contents.bytes();
  if (is_jpeg(contents)) {
    if (options.channels == 4) {
      throw InvalidArgumentError("io::decode_image: channels is 4, which JPEG does not have");
    }
    const Tensor pixels =
        decode_jpeg(contents, {.channels = options.channels, .max_pixels = options.max_pixels});
    if (options.dtype == int32) return pixels.to(int32) * 256;
    return image::convert_image_dtype(pixels, options.dtype);
  }
  if (begins_with(bytes, "\x89PNG")) {
    if (!floating) {
      return decode_png(
          contents,
          {.channels = options.channels, .dtype = options.dtype, .max_pixels = options.max_pixels});
    }
    const Tensor pixels = decode_png(
        contents, {.channels = options.channels, .dtype = int32, .max_pixels = options.max_pixels});
    return pixels.to(options.dtype) * (1.0 / 65535);
  }
  if (begins_with(bytes, "GIF8") || begins_with(bytes, "BM")) {
    throw UnimplementedError(
        "io::decode_image: GIF and BMP files are not decoded; convert them to "
        "PNG");
  }
  throw InvalidArgumentError(
      str("io::decode_image: ", bytes.size(), " bytes that are neither a JPEG nor a PNG file"));
}

}  // namespace cohort::io
