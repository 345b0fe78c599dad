// Pixels as a PNG file, by libpng.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/image/codecs/picture.h"

namespace cohort::internal {

// The file of pixels of one to four channels (gray, gray and alpha, RGB, RGB and alpha), row by
// row. compression: zlib's level, 0 to 9; -1: its default. Errors: InvalidArgument (a side that PNG
// cannot hold), Internal.
std::string encode_png_file(const uint8_t* pixels, const PictureShape& shape, int compression);
std::string encode_png_file(const uint16_t* pixels, const PictureShape& shape, int compression);

}  // namespace cohort::internal
