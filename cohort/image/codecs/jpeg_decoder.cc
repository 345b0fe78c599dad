#include "cohort/image/codecs/jpeg_decoder.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

// Needs <cstdio> before it.
// clang-format off
#include <jpeglib.h>
// clang-format on

#include "cohort/core/error.h"

namespace cohort::internal {

struct JpegErrors {
  jpeg_error_mgr base;  // first: libjpeg knows this part alone
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
};

struct JpegSource {
  jpeg_source_mgr base;  // first, likewise
  const JOCTET* begin = nullptr;
  bool recovers = false;
  size_t read_again = 0;  // bytes
  int ends = 0;           // how often the bytes ended
};

namespace {

// A block of 8 x 8 pixels takes a bit at least, and subsampled planes may have a block for two.
constexpr double kMostPixelsPerByte = 8 * 64 * 2;
// Programs write about ten, and every one of them costs a pass over the picture.
constexpr int kMostScans = 100;

[[noreturn]] void on_error(j_common_ptr common) {
  auto* const errors = reinterpret_cast<JpegErrors*>(common->err);
  common->err->format_message(common, errors->message);
  std::longjmp(errors->jump, 1);
}

// Warnings are of files that are decoded all the same.
void on_message(j_common_ptr, int) {}
void no_output(j_common_ptr) {}
void nothing(j_decompress_ptr) {}

constexpr JOCTET kEndOfImage[] = {0xff, JPEG_EOI};

// Called at the end of the bytes: that of a file that is cut short. In the middle of a block of the
// picture libjpeg has not yet told what it has read, and begins that again, as in TensorFlow; in
// the middle of a header that would go on for ever.
boolean end_of_bytes(j_decompress_ptr cinfo) {
  constexpr size_t kMostReadAgain = size_t{1} << 20;
  constexpr int kMostEnds = 1000;
  auto* const source = reinterpret_cast<JpegSource*>(cinfo->src);
  if (!source->recovers || source->base.next_input_byte == source->begin) return FALSE;
  source->read_again += source->base.bytes_in_buffer;
  if (source->base.bytes_in_buffer > 0 && source->read_again < kMostReadAgain) return TRUE;
  if (++source->ends > kMostEnds) {
    auto* const errors = reinterpret_cast<JpegErrors*>(cinfo->err);
    std::strcpy(errors->message, "it is cut short");
    std::longjmp(errors->jump, 1);
  }
  source->base.next_input_byte = kEndOfImage;
  source->base.bytes_in_buffer = sizeof kEndOfImage;
  return TRUE;
}

void skip_bytes(j_decompress_ptr cinfo, long count) {
  if (count < 0) return;
  const size_t skipped = std::min(static_cast<size_t>(count), cinfo->src->bytes_in_buffer);
  cinfo->src->next_input_byte += skipped;
  cinfo->src->bytes_in_buffer -= skipped;
}

void check_scans(j_common_ptr common) {
  if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number <= kMostScans) return;
  auto* const errors = reinterpret_cast<JpegErrors*>(common->err);
  static_assert(kMostScans == 100);
  std::strcpy(errors->message, "it has more than 100 scans");
  std::longjmp(errors->jump, 1);
}

J_DCT_METHOD method_of(DctMethod method) {
  switch (method) {
    case DctMethod::kIntegerAccurate:
      return JDCT_ISLOW;
    default:
      return JDCT_IFAST;
  }
}

// Black, cyan, magenta and yellow to red, green and blue. Adobe's files hold them inverted.
void rgb_of_cmyk(const uint8_t* in, int64_t count, bool inverted, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i, in += 4, out += 3) {
    for (int c = 0; c < 3; ++c) {
      const int color = inverted ? in[c] : 255 - in[c];
      const int black = inverted ? in[3] : 255 - in[3];
      out[c] = static_cast<uint8_t>(color * black / 255);
    }
  }
}

bool is_cmyk(const jpeg_decompress_struct& cinfo) {
  return cinfo.jpeg_color_space == JCS_CMYK || cinfo.jpeg_color_space == JCS_YCCK;
}

[[noreturn]] void fail(std::string_view contents, const std::string& why) {
  throw InvalidArgumentError(
      str("io::decode_jpeg: invalid JPEG data of ", contents.size(), " bytes: ", why));
}

}  // namespace

// libjpeg ends a call by a jump: no object with a destructor may live in the functions that it
// jumps out of, so these hold none and set plain results.
struct JpegDecoder::State {
  explicit State(std::string_view bytes, bool recovers) : contents(bytes) {
    cinfo.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = on_error;
    errors.base.emit_message = on_message;
    errors.base.output_message = no_output;
    source.begin = reinterpret_cast<const JOCTET*>(bytes.data());
    source.recovers = recovers;
    source.base.init_source = nothing;
    source.base.fill_input_buffer = end_of_bytes;
    source.base.skip_input_data = skip_bytes;
    source.base.resync_to_restart = jpeg_resync_to_restart;
    source.base.term_source = nothing;
    source.base.next_input_byte = source.begin;
    source.base.bytes_in_buffer = bytes.size();
    progress.progress_monitor = check_scans;
  }
  ~State() { jpeg_destroy_decompress(&cinfo); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Each is false after an error, whose text is in `errors`.
  bool read_header();
  bool set_output(const JpegDecoderOptions& options);
  bool start(const JpegDecoderOptions& options);
  bool read_rows(int64_t count, int64_t row_bytes, int64_t offset, uint8_t* out);

  std::string_view contents;
  jpeg_decompress_struct cinfo = {};
  JpegErrors errors = {};
  JpegSource source = {};
  jpeg_progress_mgr progress = {};
  std::vector<uint8_t> row;  // where rows are not written as they are wanted
  int64_t rows_read = 0;
};

bool JpegDecoder::State::read_header() {
  if (setjmp(errors.jump)) return false;
  jpeg_create_decompress(&cinfo);
  cinfo.src = &source.base;
  cinfo.progress = &progress;
  if (jpeg_read_header(&cinfo, TRUE) == JPEG_HEADER_OK) return true;
  std::strcpy(errors.message, "its header is cut short");
  return false;
}

bool JpegDecoder::State::set_output(const JpegDecoderOptions& options) {
  if (setjmp(errors.jump)) return false;
  const int channels = options.channels ? options.channels : std::min(cinfo.num_components, 3);
  if (channels == 1) {
    cinfo.out_color_space = JCS_GRAYSCALE;
  } else if (channels == 3) {
    cinfo.out_color_space = is_cmyk(cinfo) ? JCS_CMYK : JCS_RGB;
  } else {
    std::strcpy(errors.message, "it has two components");
    return false;
  }
  cinfo.do_fancy_upsampling = options.fancy_upscaling ? TRUE : FALSE;
  cinfo.scale_num = 1;
  cinfo.scale_denom = static_cast<unsigned>(options.ratio);
  cinfo.dct_method = method_of(options.dct_method);
  jpeg_calc_output_dimensions(&cinfo);
  return true;
}

bool JpegDecoder::State::start(const JpegDecoderOptions& options) {
  if (setjmp(errors.jump)) return false;
  if (!jpeg_start_decompress(&cinfo)) {
    std::strcpy(errors.message, "it is cut short");
    return false;
  }
  if (options.crop) {
    auto x = static_cast<JDIMENSION>(options.crop->x);
    auto width = static_cast<JDIMENSION>(options.crop->width);
    jpeg_crop_scanline(&cinfo, &x, &width);
    const auto skipped = static_cast<JDIMENSION>(options.crop->y);
    if (jpeg_skip_scanlines(&cinfo, skipped) != skipped) {
      std::strcpy(errors.message, "it is cut short");
      return false;
    }
  }
  return true;
}

// offset: bytes of a row before those that are wanted.
bool JpegDecoder::State::read_rows(int64_t count, int64_t row_bytes, int64_t offset, uint8_t* out) {
  if (setjmp(errors.jump)) return false;
  const bool converts = cinfo.out_color_space == JCS_CMYK;
  while (rows_read < count) {
    uint8_t* const to = out + rows_read * row_bytes;
    JSAMPROW line = row.empty() ? to : row.data();
    if (jpeg_read_scanlines(&cinfo, &line, 1) != 1) return true;  // the end of the bytes
    if (converts) {
      rgb_of_cmyk(row.data() + offset, row_bytes / 3, cinfo.saw_Adobe_marker, to);
    } else if (!row.empty()) {
      std::memcpy(to, row.data() + offset, static_cast<size_t>(row_bytes));
    }
    ++rows_read;
  }
  return true;
}

JpegDecoder::JpegDecoder(std::string_view contents, const JpegDecoderOptions& options)
    : state_(std::make_unique<State>(contents, options.try_recover_truncated)), options_(options) {
  if (contents.empty()) fail(contents, "there are none");
  if (!state_->read_header()) fail(contents, state_->errors.message);
  const auto& cinfo = state_->cinfo;
  stored_ = {cinfo.image_height, cinfo.image_width, cinfo.num_components};
  if (options.max_pixels < 0) return;
  check_pixels("io::decode_jpeg", stored_, static_cast<int64_t>(contents.size()),
               kMostPixelsPerByte, options.max_pixels);
  if (!state_->set_output(options)) fail(contents, state_->errors.message);
  shape_ = {cinfo.output_height, cinfo.output_width,
            cinfo.out_color_space == JCS_GRAYSCALE ? 1 : 3};
  if (!options.crop) return;
  const CropWindow& window = *options.crop;
  if (window.y < 0 || window.x < 0 || window.height < 1 || window.width < 1 ||
      window.height > shape_.height - window.y || window.width > shape_.width - window.x) {
    throw InvalidArgumentError(str("io::decode_and_crop_jpeg: the crop window ", window.height,
                                   " x ", window.width, " at (", window.y, ", ", window.x,
                                   ") does not lie in a picture of ", shape_.height, " x ",
                                   shape_.width));
  }
  shape_.height = window.height;
  shape_.width = window.width;
}

JpegDecoder::~JpegDecoder() = default;

void JpegDecoder::decode(uint8_t* out) {
  State& state = *state_;
  if (!state.start(options_)) fail(state.contents, state.errors.message);
  const auto& cinfo = state.cinfo;
  const int64_t stored_channels = cinfo.out_color_space == JCS_CMYK ? 4 : shape_.channels;
  const int64_t width = cinfo.output_width;
  if (stored_channels != shape_.channels || width != shape_.width) {
    state.row.resize(static_cast<size_t>(width * stored_channels));
  }
  const int64_t row_bytes = shape_.width * shape_.channels;
  const int64_t offset = (width - shape_.width) * stored_channels;
  if (!state.read_rows(shape_.height, row_bytes, offset, out)) {
    fail(state.contents, state.errors.message);
  }
  if (state.rows_read == shape_.height) return;
  const float read = static_cast<float>(state.rows_read) / static_cast<float>(shape_.height);
  if (!options_.try_recover_truncated || read < options_.acceptable_fraction) {
    fail(state.contents, str("it ends after ", state.rows_read, " of ", shape_.height, " rows"));
  }
  // The rows that are missing are the last one again.
  if (state.rows_read == 0) std::memset(out, 0, static_cast<size_t>(row_bytes));
  for (int64_t y = std::max<int64_t>(state.rows_read, 1); y < shape_.height; ++y) {
    std::memcpy(out + y * row_bytes, out + (y - 1) * row_bytes, static_cast<size_t>(row_bytes));
  }
}

PictureShape jpeg_shape(std::string_view contents) {
  return JpegDecoder(contents, {.max_pixels = -1}).stored();
}

}  // namespace cohort::internal
