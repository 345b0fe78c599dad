#include "cohort/core/files/deflate.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace cohort::internal {
namespace {

constexpr uint32_t kLevel = 1;
constexpr size_t kMostAtOnce = size_t{1} << 30;  // ISA-L counts bytes in 32 bits

}  // namespace

struct Deflater::State {
  isal_zstream stream;
  std::array<uint8_t, ISAL_DEF_LVL1_DEFAULT> level_buffer;
  std::array<char, 64 << 10> output;
};

Deflater::Deflater(Compression compression) : state_(std::make_unique<State>()) {
  isal_zstream& stream = state_->stream;
  isal_deflate_init(&stream);
  stream.gzip_flag = compression == Compression::kGzip ? IGZIP_GZIP : IGZIP_ZLIB;
  stream.level = kLevel;
  stream.level_buf = state_->level_buffer.data();
  stream.level_buf_size = static_cast<uint32_t>(state_->level_buffer.size());
}

Deflater::~Deflater() = default;

// Compresses until all input is taken and all output that is ready is out. None of the calls can
// fail, because they are given a buffer.
void Deflater::run(std::string_view in, std::string& out) {
  isal_zstream& stream = state_->stream;
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(in.data()));  // it is only read
  stream.avail_in = static_cast<uint32_t>(in.size());
  do {
    stream.next_out = reinterpret_cast<uint8_t*>(state_->output.data());
    stream.avail_out = static_cast<uint32_t>(state_->output.size());
    isal_deflate(&stream);
    out.append(state_->output.data(), state_->output.size() - stream.avail_out);
  } while (stream.avail_out == 0 || stream.avail_in > 0);
}

void Deflater::deflate(std::string_view in, std::string& out) {
  state_->stream.flush = NO_FLUSH;
  for (; !in.empty(); in.remove_prefix(std::min(in.size(), kMostAtOnce))) {
    run(in.substr(0, kMostAtOnce), out);
  }
}

void Deflater::flush(std::string& out) {
  state_->stream.flush = SYNC_FLUSH;
  run({}, out);
}

void Deflater::finish(std::string& out) {
  state_->stream.flush = NO_FLUSH;
  state_->stream.end_of_stream = 1;
  run({}, out);
}

}  // namespace cohort::internal
