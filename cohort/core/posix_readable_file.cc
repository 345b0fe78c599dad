#include "cohort/core/posix_readable_file.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "cohort/core/error.h"
#include "cohort/core/posix_error.h"
#include "cohort/core/posix_io.h"
#include "cohort/core/read_ahead.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr uint64_t kDirectScanBytes = uint64_t{32} << 20;

}  // namespace

void PosixReadableFile::throw_too_short(uint64_t offset, uint64_t length, uint64_t size) const {
  throw DataLossError(str(quoted(path_), " ends after ", size, " bytes: ", length,
                          " bytes at offset ", offset, " are missing"));
}

void PosixReadableFile::check_range(uint64_t offset, uint64_t length) const {
  if (offset > size_ || length > size_ - offset) throw_too_short(offset, length, size_);
}

void PosixReadableFile::read(uint64_t offset, void* out, size_t length) const {
  check_range(offset, length);
  const Transfer done = read_all(fd_.get(), offset, out, length);
  if (done.error_number != 0) throw_errno(done.error_number, "reading " + quoted(path_));
  if (done.bytes < length) throw_too_short(offset, length, offset + done.bytes);
}

// Asks for single bytes that the kernel is not to wait for.
bool PosixReadableFile::is_cached(uint64_t offset, uint64_t length) const {
  constexpr uint64_t kSamples = 16;
  int missing = 0;
  for (uint64_t i = 0; i < kSamples; ++i) {
    char byte = 0;
    iovec place = {&byte, 1};
    const auto at = static_cast<off_t>(offset + length / kSamples * i);
    if (::preadv2(fd_.get(), &place, 1, at, RWF_NOWAIT) == -1 && errno == EAGAIN) ++missing;
  }
  return missing <= 1;
}

void PosixReadableFile::scan(uint64_t offset, uint64_t length,
                             const std::function<void(std::string_view)>& visit) const {
  check_range(offset, length);
  if (length >= kDirectScanBytes && !is_cached(offset, length)) {
    // By the descriptor: the path may name another file by now, or none.
    const std::string same_file = "/proc/self/fd/" + std::to_string(fd_.get());
    const UniqueFd direct(retry_eintr(
        [&] { return ::open(same_file.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT); }));
    if (direct.valid()) return scan_direct(direct, offset, length, visit);
  }
  ReadableFile::scan(offset, length, visit);
}

void PosixReadableFile::scan_direct(const UniqueFd& fd, uint64_t offset, uint64_t length,
                                    const std::function<void(std::string_view)>& visit) const {
  const uint64_t end = offset + length;
  uint64_t place = offset / kDirectAlignment * kDirectAlignment;  // of the next block to be read
  uint64_t position = place;                                      // of the next to be visited
  ReadAhead ahead([&](char* out, size_t capacity) -> size_t {
    if (place >= end) return 0;
    const uint64_t left = (end - place + kDirectAlignment - 1) / kDirectAlignment * kDirectAlignment;
    const size_t wanted = std::min<uint64_t>(capacity, left);
    Transfer done = read_all(fd.get(), place, out, wanted);
    // Some file systems refuse only now; the ordinary descriptor reads the rest.
    if (done.error_number == EINVAL) done = read_all(fd_.get(), place, out, wanted);
    if (done.error_number != 0) throw_errno(done.error_number, "reading " + quoted(path_));
    if (place + done.bytes < std::min<uint64_t>(place + wanted, end)) {
      throw_too_short(offset, length, place + done.bytes);
    }
    place += wanted;
    return done.bytes;
  });
  for (std::string_view block = ahead.next(); !block.empty(); block = ahead.next()) {
    const uint64_t skip = position < offset ? offset - position : 0;
    const uint64_t here = std::min<uint64_t>(block.size(), end - position);
    visit(block.substr(skip, here - skip));
    position += block.size();
  }
}

}  // namespace cohort::internal
