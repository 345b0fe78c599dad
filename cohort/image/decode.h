// Files of pictures as tensors, as tf.io decodes them.
//
//   auto pictures = tf::data::Dataset::list_files("pictures/*.jpg").map([](tf::StringTensor path) {
//     tf::Tensor picture = tf::io::decode_jpeg(tf::io::read_file(path), {.channels = 3});
//     return tf::image::resize(picture, {224, 224});
//   });
//
// Pixels are [height, width, channels], uint8 or, of 16 bits, int32: libtorch 1.13 has no uint16.
// Where TensorFlow decodes CMYK as RGB, ignores a file's colour profile, or turns no picture that
// its EXIF says is turned, so does Cohort.
//
// Files may come from anybody: before any memory is taken for pixels, a size that the file's bytes
// cannot hold is refused, and a progressive JPEG file of more than 100 scans is not decoded.
// Errors of all: InvalidArgument (not a file of this kind; corrupt or cut short; larger than it can
// be, or than 2^29 numbers; an unknown option). Thread safety: any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/core/structure/string_tensor.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::io {

// The bytes of one file, which must live as long as a call: a string, or a StringTensor of one.
class COHORT_API FileContents {
 public:
  FileContents(std::string_view bytes) : bytes_(bytes) {}
  FileContents(const std::string& bytes) : bytes_(bytes) {}
  FileContents(const char* bytes) : bytes_(bytes) {}
  // Errors: InvalidArgument (not one string).
  FileContents(const StringTensor& bytes) : bytes_(bytes.item()) {}
  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

// All bytes of a file. Errors: NotFound, PermissionDenied, Unknown.
COHORT_API StringTensor read_file(const FileContents& path);

struct DecodeJpegOptions {
  int64_t channels = 0;  // 1: gray, 3: RGB, 0: as many as the file has
  int64_t ratio = 1;     // by which the sides are divided while decoding: 1, 2, 4 or 8
  bool fancy_upscaling = true;
  // A file that is cut short is decoded as far as it goes, if that is acceptable_fraction of its
  // rows.
  bool try_recover_truncated = false;
  double acceptable_fraction = 1;
  // "INTEGER_ACCURATE" or, faster and less exact by up to some 5 of 255, "INTEGER_FAST"; "": the
  // latter.
  std::string dct_method = "";
  // The most pixels that are decoded, instead of those that the file's size makes plausible (0).
  int64_t max_pixels = 0;
};
COHORT_API Tensor decode_jpeg(const FileContents& contents, const DecodeJpegOptions& options = {});
// crop_window: y, x, height and width of what alone is decoded.
// Errors: also InvalidArgument (a window that does not lie in the picture).
COHORT_API Tensor decode_and_crop_jpeg(const FileContents& contents,
                                       const std::array<int64_t, 4>& crop_window,
                                       const DecodeJpegOptions& options = {});
// Height, width and channels from the header alone. Shape: [3]. dtype: int32 or int64.
COHORT_API Tensor extract_jpeg_shape(const FileContents& contents, DType output_type = int32);
// Looks at the first bytes alone.
COHORT_API bool is_jpeg(const FileContents& contents);

struct DecodePngOptions {
  int64_t channels = 0;  // 1: gray, 2: gray and alpha, 3: RGB, 4: RGB and alpha, 0: the file's
  DType dtype = uint8;   // or int32: of 16 bits, 0 to 65535
  int64_t max_pixels = 0;
};
COHORT_API Tensor decode_png(const FileContents& contents, const DecodePngOptions& options = {});

struct DecodeImageOptions {
  int64_t channels = 0;
  // uint8, int32 (of 16 bits), or floating: numbers from 0 to 1.
  DType dtype = uint8;
  // Concerns animations, which are GIF files: kept because TensorFlow has it.
  bool expand_animations = true;
  int64_t max_pixels = 0;
};
// JPEG or PNG, whichever it is. Errors: also Unimplemented (GIF and BMP).
COHORT_API Tensor decode_image(const FileContents& contents,
                               const DecodeImageOptions& options = {});

}  // namespace cohort::io
