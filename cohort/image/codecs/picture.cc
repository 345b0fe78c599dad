#include "cohort/image/codecs/picture.h"

#include <string>

#include "cohort/core/error.h"

namespace cohort::internal {

void check_pixels(const char* format, const PictureShape& shape, int64_t bytes,
                  double most_per_byte, int64_t max_pixels) {
  // The header is most of the file of a small picture, so that any may have these.
  constexpr double kAlways = 1 << 16;
  const double plausible = kAlways + most_per_byte * static_cast<double>(bytes);
  const double most = max_pixels > 0 ? static_cast<double>(max_pixels) : plausible;
  // Sides may be any numbers, whose product no integer need hold.
  const double pixels = static_cast<double>(shape.height) * static_cast<double>(shape.width);
  if (shape.height < 1 || shape.width < 1) {
    throw InvalidArgumentError(
        str(format, ": the picture is ", shape.height, " x ", shape.width, " pixels"));
  }
  if (pixels > most) {
    const std::string why = max_pixels > 0
                                ? str("max_pixels is ", max_pixels)
                                : str("its ", bytes, " bytes can hold ", static_cast<int64_t>(most),
                                      " at most; give max_pixels if it is what it says");
    throw InvalidArgumentError(str(format, ": the picture is said to be ", shape.height, " x ",
                                   shape.width, " pixels; ", why));
  }
  if (pixels * static_cast<double>(shape.channels) >= static_cast<double>(kMostElements)) {
    throw InvalidArgumentError(str(format, ": the picture of ", shape.height, " x ", shape.width,
                                   " pixels of ", shape.channels, " channels has ", kMostElements,
                                   " numbers or more, which is too large"));
  }
}

}  // namespace cohort::internal
