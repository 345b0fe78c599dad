#include "cohort/image/codecs/png_decoder.h"

#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

// Deflate's own limit: no byte of a file stands for more bytes of pixels, and a byte for 8 pixels.
constexpr double kMostBytesPerByte = 1032;

// Chunks that say nothing of the pixels, and that would be inflated.
constexpr png_byte kIgnoredChunks[] = "tEXt\0zTXt\0iTXt\0sPLT\0eXIf\0hIST\0tIME\0pCAL\0sCAL\0oFFs";

constexpr size_t kSignatureBytes = 8;

[[noreturn]] void fail_png(std::string_view contents, const std::string& why) {
  throw InvalidArgumentError(
      str("io::decode_png: invalid PNG data of ", contents.size(), " bytes: ", why));
}

}  // namespace

// libpng ends a call by a jump: no object with a destructor may live in the functions that it jumps
// out of, so these hold none and set plain results.
struct PngDecoder::State {
  explicit State(std::string_view bytes) : contents(bytes), rest(bytes) {}
  ~State() { png_destroy_read_struct(&png, &info, nullptr); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  static void on_error(png_structp png, png_const_charp text) {
    auto* const state = static_cast<State*>(png_get_error_ptr(png));
    copy_message(text, state->message, sizeof state->message);
    std::longjmp(state->jump, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void read_bytes(png_structp png, png_bytep out, size_t count) {
    auto* const state = static_cast<State*>(png_get_io_ptr(png));
    if (count > state->rest.size()) png_error(png, "it is cut short");
    std::memcpy(out, state->rest.data(), count);
    state->rest.remove_prefix(count);
  }

  // Each is false after an error, whose text is in `message`.
  bool read_header();
  void choose_channels(int wanted);
  bool read_rows(bool wide_rows, uint8_t* out, int64_t row_bytes);
  void set_transformations(bool wide_rows);

  std::string_view contents, rest;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf jump;
  char message[200] = "";
  int depth = 0;
  int color = 0;
  int channels = 0;
  bool transparent = false;  // says which color is
  PictureShape stored;
};

bool PngDecoder::State::read_header() {
  if (setjmp(jump)) return false;
  png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
  info = png ? png_create_info_struct(png) : nullptr;
  if (!info) {
    std::strcpy(message, "libpng cannot be used");
    return false;
  }
  constexpr int kChunks = (sizeof kIgnoredChunks) / 5;
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, kIgnoredChunks, kChunks);
  png_set_read_fn(png, this, read_bytes);
  png_read_info(png, info);
  png_uint_32 width = 0, height = 0;
  png_get_IHDR(png, info, &width, &height, &depth, &color, nullptr, nullptr, nullptr);
  transparent = png_get_valid(png, info, PNG_INFO_tRNS) != 0;
  stored = {height, width, png_get_channels(png, info)};
  return true;
}

void PngDecoder::State::choose_channels(int wanted) {
  const bool palette = color == PNG_COLOR_TYPE_PALETTE;
  channels = wanted != 0 ? wanted
             : palette   ? (transparent ? 4 : 3)
                         : static_cast<int>(stored.channels);
}

void PngDecoder::State::set_transformations(bool wide_rows) {
  const bool has_alpha = (color & PNG_COLOR_MASK_ALPHA) != 0;
  const bool is_gray = (color & PNG_COLOR_MASK_COLOR) == 0;
  if (channels % 2 == 0) {
    if (transparent) {
      png_set_tRNS_to_alpha(png);
    } else if (!has_alpha) {
      png_set_add_alpha(png, (1u << depth) - 1, PNG_FILLER_AFTER);
    }
  } else if (has_alpha || transparent) {
    png_set_strip_alpha(png);
  }
  if (depth > 8 && !wide_rows) png_set_strip_16(png);
  png_set_packing(png);
  png_set_interlace_handling(png);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  if (wide_rows) png_set_swap(png);
#endif
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (is_gray && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
  if (channels < 3 && !is_gray) png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
  if (channels >= 3 && is_gray) png_set_gray_to_rgb(png);
  png_read_update_info(png, info);
}

bool PngDecoder::State::read_rows(bool wide_rows, uint8_t* out, int64_t row_bytes) {
  if (setjmp(jump)) return false;
  set_transformations(wide_rows);
  // What libpng writes must be what there is room for.
  if (static_cast<int64_t>(png_get_rowbytes(png, info)) != row_bytes) {
    std::strcpy(message, "its pixels have another form than its header says");
    return false;
  }
  const int passes =
      png_get_interlace_type(png, info) == PNG_INTERLACE_NONE ? 1 : PNG_INTERLACE_ADAM7_PASSES;
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < stored.height; ++y) png_read_row(png, out + y * row_bytes, nullptr);
  }
  png_read_end(png, nullptr);
  return true;
}

PngDecoder::PngDecoder(std::string_view contents, const PngDecoderOptions& options)
    : state_(std::make_unique<State>(contents)) {
  if (contents.size() < kSignatureBytes ||
      png_sig_cmp(reinterpret_cast<png_const_bytep>(contents.data()), 0, kSignatureBytes) != 0) {
    fail_png(contents, "it does not begin as one does");
  }
  if (!state_->read_header()) fail_png(contents, state_->message);
  state_->choose_channels(options.channels);
  const PictureShape& stored = state_->stored;
  shape_ = {stored.height, stored.width, state_->channels};
  const double bits = static_cast<double>(stored.channels) * state_->depth;
  check_pixels("io::decode_png", shape_, static_cast<int64_t>(contents.size()),
               kMostBytesPerByte * 8 / bits, options.max_pixels);
}

PngDecoder::~PngDecoder() = default;

void PngDecoder::decode_rows(bool wide, uint8_t* out) {
  if (!state_->read_rows(wide, out, shape_.width * shape_.channels * (wide ? 2 : 1))) {
    fail_png(state_->contents, state_->message);
  }
}

void PngDecoder::decode(uint8_t* out) { decode_rows(false, out); }

void PngDecoder::decode(uint16_t* out) {
  if (state_->depth == 16) return decode_rows(true, reinterpret_cast<uint8_t*>(out));
  auto* const bytes = reinterpret_cast<uint8_t*>(out);
  decode_rows(false, bytes);
  // The last first, for both share their memory.
  for (int64_t i = shape_.elements(); i-- > 0;) out[i] = static_cast<uint16_t>(bytes[i] * 257);
}

}  // namespace cohort::internal
