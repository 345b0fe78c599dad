#include "cohort/image/codecs/jpeg_encoder.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <string_view>

// Needs <cstdio> before it.
// clang-format off
#include <jpeglib.h>
// clang-format on

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

struct EncoderErrors {
  jpeg_error_mgr base;  // first: libjpeg knows this part alone
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void jump_out(j_common_ptr common) {
  auto* const errors = reinterpret_cast<EncoderErrors*>(common->err);
  common->err->format_message(common, errors->message);
  std::longjmp(errors->jump, 1);
}

// libjpeg ends a call by a jump, so that its state is no local variable.
struct JpegEncoder {
  JpegEncoder() {
    cinfo.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = jump_out;
  }
  ~JpegEncoder() {
    jpeg_destroy_compress(&cinfo);
    std::free(buffer);
  }
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;

  bool encode(const uint8_t* pixels, const PictureShape& shape, const JpegEncoderOptions& options,
              std::string_view metadata);
  void set(const PictureShape& shape, const JpegEncoderOptions& options);

  jpeg_compress_struct cinfo = {};
  EncoderErrors errors = {};
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
};

void JpegEncoder::set(const PictureShape& shape, const JpegEncoderOptions& options) {
  cinfo.image_width = static_cast<JDIMENSION>(shape.width);
  cinfo.image_height = static_cast<JDIMENSION>(shape.height);
  cinfo.input_components = static_cast<int>(shape.channels);
  cinfo.in_color_space = shape.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&cinfo);
  if (options.optimize_size) cinfo.optimize_coding = TRUE;
  cinfo.density_unit = options.density_in_cm ? 2 : 1;
  cinfo.X_density = static_cast<UINT16>(options.x_density);
  cinfo.Y_density = static_cast<UINT16>(options.y_density);
  jpeg_set_quality(&cinfo, options.quality, TRUE);
  if (options.progressive) jpeg_simple_progression(&cinfo);
  if (!options.chroma_downsampling) {
    for (int i = 0; i < cinfo.num_components; ++i) {
      cinfo.comp_info[i].h_samp_factor = 1;
      cinfo.comp_info[i].v_samp_factor = 1;
    }
  }
}

bool JpegEncoder::encode(const uint8_t* pixels, const PictureShape& shape,
                         const JpegEncoderOptions& options, std::string_view metadata) {
  if (setjmp(errors.jump)) return false;
  jpeg_create_compress(&cinfo);
  jpeg_mem_dest(&cinfo, &buffer, &size);
  set(shape, options);
  jpeg_start_compress(&cinfo, TRUE);
  if (!metadata.empty()) {
    jpeg_write_marker(&cinfo, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(metadata.data()),
                      static_cast<unsigned>(metadata.size()));
  }
  const int64_t row_bytes = shape.width * shape.channels;
  while (cinfo.next_scanline < cinfo.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels + cinfo.next_scanline * row_bytes);
    jpeg_write_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_compress(&cinfo);
  return true;
}

}  // namespace

std::string encode_jpeg_file(const uint8_t* pixels, const PictureShape& shape,
                             const JpegEncoderOptions& options) {
  if (shape.height > JPEG_MAX_DIMENSION || shape.width > JPEG_MAX_DIMENSION) {
    throw InvalidArgumentError(str("io::encode_jpeg: the image is ", shape.height, " x ",
                                   shape.width, " pixels; JPEG holds ", JPEG_MAX_DIMENSION,
                                   " a side at most"));
  }
  std::string metadata;
  if (!options.xmp_metadata.empty()) {
    metadata = std::string("http://ns.adobe.com/xap/1.0/") + '\0' + options.xmp_metadata;
    if (metadata.size() > 65533) {
      throw InvalidArgumentError(str("io::encode_jpeg: xmp_metadata has ",
                                     options.xmp_metadata.size(),
                                     " bytes, more than fit into a marker"));
    }
  }
  JpegEncoder encoder;
  if (encoder.encode(pixels, shape, options, metadata)) {
    return {reinterpret_cast<const char*>(encoder.buffer), encoder.size};
  }
  throw InternalError(str("io::encode_jpeg: ", encoder.errors.message));
}

}  // namespace cohort::internal
