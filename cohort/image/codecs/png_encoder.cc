#include "cohort/image/codecs/png_encoder.h"

#include <png.h>

#include <csetjmp>
#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

// libpng ends a call by a jump, so that its state is no local variable.
struct PngEncoder {
  PngEncoder() = default;
  ~PngEncoder() { png_destroy_write_struct(&png, &info); }
  PngEncoder(const PngEncoder&) = delete;
  PngEncoder& operator=(const PngEncoder&) = delete;

  static void on_error(png_structp png, png_const_charp text) {
    auto* const encoder = static_cast<PngEncoder*>(png_get_error_ptr(png));
    copy_message(text, encoder->message, sizeof encoder->message);
    std::longjmp(encoder->jump, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void write_bytes(png_structp png, png_bytep bytes, size_t count) {
    static_cast<PngEncoder*>(png_get_io_ptr(png))
        ->file.append(reinterpret_cast<const char*>(bytes), count);
  }
  static void flush(png_structp) {}

  bool encode(const uint8_t* pixels, const PictureShape& shape, int depth, int compression);

  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf jump;
  char message[200] = "";
  std::string file;
};

bool PngEncoder::encode(const uint8_t* pixels, const PictureShape& shape, int depth,
                        int compression) {
  if (setjmp(jump)) return false;
  png = png_create_write_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
  info = png ? png_create_info_struct(png) : nullptr;
  if (!info) {
    copy_message("libpng cannot be used", message, sizeof message);
    return false;
  }
  png_set_write_fn(png, this, write_bytes, flush);
  png_set_compression_level(png, compression);
  constexpr int kColors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                             PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(png, info, static_cast<png_uint_32>(shape.width),
               static_cast<png_uint_32>(shape.height), depth, kColors[shape.channels - 1],
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  if (depth > 8) png_set_swap(png);
#endif
  const int64_t row_bytes = shape.width * shape.channels * depth / 8;
  for (int64_t y = 0; y < shape.height; ++y) png_write_row(png, pixels + y * row_bytes);
  png_write_end(png, nullptr);
  return true;
}

std::string encoded(const uint8_t* pixels, const PictureShape& shape, int depth, int compression) {
  constexpr int64_t kMost = 1000000;  // libpng's own limit
  if (shape.height > kMost || shape.width > kMost) {
    throw InvalidArgumentError(str("io::encode_png: the image is ", shape.height, " x ",
                                   shape.width, " pixels; a side has ", kMost, " at most"));
  }
  PngEncoder encoder;
  if (encoder.encode(pixels, shape, depth, compression)) return std::move(encoder.file);
  throw InternalError(str("io::encode_png: ", encoder.message));
}

}  // namespace

std::string encode_png_file(const uint8_t* pixels, const PictureShape& shape, int compression) {
  return encoded(pixels, shape, 8, compression);
}

std::string encode_png_file(const uint16_t* pixels, const PictureShape& shape, int compression) {
  return encoded(reinterpret_cast<const uint8_t*>(pixels), shape, 16, compression);
}

}  // namespace cohort::internal
