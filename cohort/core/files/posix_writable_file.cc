#include "cohort/core/files/posix_writable_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cohort/core/files/posix_io.h"
#include "cohort/core/host/posix_error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr size_t kSmallBufferBytes = size_t{64} << 10;

// Whether the file system takes it; some say so only at the first write.
bool set_direct(int fd, bool direct) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags != -1 && ::fcntl(fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

AlignedBuffer buffer_for(uint64_t expected_bytes) {
  if (expected_bytes >= kDirectBytes) return big_buffer();
  if (expected_bytes == 0) return small_buffer(kSmallBufferBytes);
  return small_buffer(std::min<uint64_t>(expected_bytes, kSmallBufferBytes));
}

}  // namespace

PosixWritableFile::PosixWritableFile(UniqueFd fd, std::string path, const CreateOptions& options)
    : fd_(std::move(fd)), path_(std::move(path)), reserved_bytes_(options.expected_bytes) {
  if (reserved_bytes_ > 0) {
    if (int error = reserve_space(fd_.get(), reserved_bytes_)) {
      fail(error, str("reserving ", reserved_bytes_, " bytes for "));
    }
  }
  buffer_ = buffer_for(options.expected_bytes);
  if (options.expected_bytes >= kDirectBytes) {
    direct_ = set_direct(fd_.get(), true);
    behind_ = std::make_unique<WriteBehind>([this](std::string_view block) { write(block); });
  }
}

template <class Step>
void PosixWritableFile::attempt(Step&& step) {
  if (failure_) std::rethrow_exception(failure_);
  try {
    step();
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

void PosixWritableFile::append(std::string_view bytes) {
  attempt([&] {
    const size_t capacity = buffer_.get_deleter().bytes;
    appended_bytes_ += bytes.size();
    while (!bytes.empty()) {
      if (filled_ == 0 && !behind_ && bytes.size() >= capacity) return write(bytes);
      const size_t count = std::min(capacity - filled_, bytes.size());
      std::memcpy(buffer_.get() + filled_, bytes.data(), count);
      filled_ += count;
      bytes.remove_prefix(count);
      if (filled_ == capacity) flush_full_buffer();
    }
  });
}

void PosixWritableFile::sync() {
  attempt([&] {
    flush();
    trim();
    if (retry_eintr([&] { return ::fsync(fd_.get()); }) != 0) fail(errno, "syncing ");
  });
}

void PosixWritableFile::close() {
  attempt([&] {
    flush();
    trim();
    behind_.reset();
    // Linux has closed it even where a signal broke the call off.
    if (::close(fd_.release()) != 0 && errno != EINTR) fail(errno, "closing ");
  });
}

void PosixWritableFile::flush_full_buffer() {
  if (!behind_) return flush();
  behind_->exchange(buffer_, filled_);
  filled_ = 0;
}

void PosixWritableFile::flush() {
  if (behind_) behind_->drain();
  write({buffer_.get(), std::exchange(filled_, 0)});
}

void PosixWritableFile::write(std::string_view bytes) {
  if (direct_) write_past_cache(bytes);
  const Transfer done = write_all(fd_.get(), bytes);
  if (done.error_number != 0) fail(done.error_number, "writing to ");
}

// Leaves in `bytes` what must go the ordinary way, and writes that way from then on. This is the
// file's tail, which is no whole number of blocks, or all of the file if the file system wants
// other blocks.
void PosixWritableFile::write_past_cache(std::string_view& bytes) {
  const size_t whole = bytes.size() / kDirectAlignment * kDirectAlignment;
  const Transfer done = write_all(fd_.get(), bytes.substr(0, whole));
  if (done.error_number != 0 && done.error_number != EINVAL) {
    fail(done.error_number, "writing to ");
  }
  bytes.remove_prefix(done.bytes);
  if (bytes.empty()) return;
  direct_ = false;
  if (!set_direct(fd_.get(), false)) fail(errno, "changing the mode of ");
}

// Gives back the space that was reserved and not needed.
void PosixWritableFile::trim() {
  if (reserved_bytes_ > appended_bytes_) {
    if (int error = set_size(fd_.get(), appended_bytes_)) fail(error, "trimming ");
  }
  reserved_bytes_ = 0;
}

void PosixWritableFile::fail(int error_number, std::string_view action) const {
  throw_errno(error_number, str(action, quoted(path_)));
}

}  // namespace cohort::internal
