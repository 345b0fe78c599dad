#include "cohort/core/files/inflate.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstdint>

namespace cohort::internal {
namespace {

constexpr size_t kMostInflatedAtOnce = size_t{1} << 30;  // ISA-L counts bytes in 32 bits

const char* describe(int code) {
  switch (code) {
    case ISAL_INVALID_BLOCK:
      return "an invalid deflate block";
    case ISAL_INVALID_SYMBOL:
      return "an invalid deflate symbol";
    case ISAL_INVALID_LOOKBACK:
      return "a reference to before the first byte";
    case ISAL_INVALID_WRAPPER:
      return "an invalid gzip header";
    case ISAL_UNSUPPORTED_METHOD:
      return "a compression method other than deflate";
    case ISAL_INCORRECT_CHECKSUM:
      return "a checksum or length that does not fit the data";
    case ISAL_NEED_DICT:
      return "a dictionary that is not in the file";
    default:
      return "an error in the compressed data";
  }
}

}  // namespace

Inflater::Inflater(Compression compression)
    : compression_(compression), state_(std::make_unique<inflate_state>()) {
  reset();
}

Inflater::~Inflater() = default;

void Inflater::reset() {
  isal_inflate_init(state_.get());
  state_->crc_flag = compression_ == Compression::kGzip ? ISAL_GZIP : ISAL_ZLIB;
  fresh_ = true;
}

bool Inflater::ended() const { return state_->block_state == ISAL_BLOCK_FINISH; }

Inflater::Step Inflater::inflate(std::string_view in, std::span<char> out) {
  Step step;
  while (step.written < out.size() && !ended()) {
    const size_t most_in = std::min(in.size() - step.read, kMostInflatedAtOnce);
    const size_t most_out = std::min(out.size() - step.written, kMostInflatedAtOnce);
    // It is only read.
    state_->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(in.data())) + step.read;
    state_->avail_in = static_cast<uint32_t>(most_in);
    state_->next_out = reinterpret_cast<uint8_t*>(out.data()) + step.written;
    state_->avail_out = static_cast<uint32_t>(most_out);
    const int code = isal_inflate(state_.get());
    // If damaged data ends in the middle of a code, ISA-L 2.30 gives back more than it was given.
    const size_t read = most_in - std::min<size_t>(state_->avail_in, most_in);
    const size_t written = most_out - std::min<size_t>(state_->avail_out, most_out);
    fresh_ = fresh_ && read == 0;
    step.read += read;
    step.written += written;
    if (code < 0 || code == ISAL_NEED_DICT) {
      step.problem = describe(code);
      return step;
    }
    if (read == 0 && written == 0) break;
  }
  if (ended()) {
    // At the end of a zlib stream ISA-L 2.30 may hold bytes that come after it.
    const auto surplus = static_cast<size_t>(std::max(state_->read_in_length, 0) / 8);
    state_->read_in_length = 0;
    if (surplus > step.read) step.problem = "bytes after the end of the compressed data";
    step.read -= std::min(surplus, step.read);
  }
  return step;
}

}  // namespace cohort::internal
