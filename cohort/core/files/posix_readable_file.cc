#include "cohort/core/files/posix_readable_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/posix_io.h"
#include "cohort/core/files/read_ahead.h"
#include "cohort/core/host/posix_error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr uint64_t kDirectScanBytes = uint64_t{32} << 20;

// The magic numbers that linux/magic.h lacks.
constexpr uint32_t kZfsMagic = 0x2fc12fc1, kJfsMagic = 0x3153464a, kBcachefsMagic = 0xca451a4e,
                   kNtfs3Magic = 0x7366746e;

// An unknown file system counts as remote: a needless deadline costs a copy, a missing one may let
// a read hang.
bool is_on_local_file_system(int fd) {
  struct statfs status {};
  if (::fstatfs(fd, &status) != 0) return false;
  switch (static_cast<uint32_t>(status.f_type)) {
    case BTRFS_SUPER_MAGIC:
    case EROFS_SUPER_MAGIC_V1:
    case EXFAT_SUPER_MAGIC:
    case EXT4_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case HUGETLBFS_MAGIC:
    case ISOFS_SUPER_MAGIC:
    case MSDOS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case RAMFS_MAGIC:
    case REISERFS_SUPER_MAGIC:
    case SQUASHFS_MAGIC:
    case TMPFS_MAGIC:
    case UDF_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case kBcachefsMagic:
    case kJfsMagic:
    case kNtfs3Magic:
    case kZfsMagic:
      return true;
    default:
      return false;
  }
}

}  // namespace

PosixReadableFile::PosixReadableFile(UniqueFd fd, std::string path, uint64_t size)
    : fd_(std::move(fd)),
      path_(std::move(path)),
      size_(size),
      remote_(!is_on_local_file_system(fd_.get())) {}

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

// Whether most pages are in the page cache. Asked of a mapping that is never touched: a read that
// is told not to wait makes the kernel read ahead, and so changes the answer.
bool PosixReadableFile::is_cached(uint64_t offset, uint64_t length) const {
  const uint64_t begin = offset / kDirectAlignment * kDirectAlignment;
  const size_t bytes = offset + length - begin;
  void* mapped =
      ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd_.get(), static_cast<off_t>(begin));
  if (mapped == MAP_FAILED) return true;  // what cannot be known is read the ordinary way
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((bytes + page - 1) / page);
  const bool known = ::mincore(mapped, bytes, resident.data()) == 0;
  ::munmap(mapped, bytes);
  const auto count = std::count_if(resident.begin(), resident.end(),
                                   [](unsigned char flags) { return (flags & 1) != 0; });
  return !known || static_cast<size_t>(count) > resident.size() / 10 * 9;
}

void PosixReadableFile::scan(uint64_t offset, uint64_t length,
                             const std::function<void(std::string_view)>& visit) const {
  check_range(offset, length);
  if (length >= kDirectScanBytes && !is_cached(offset, length)) {
    // The file is opened again through its descriptor, because the path may name another file by
    // now, or none.
    const std::string same_file = "/proc/self/fd/" + decimal_digits(fd_.get());
    const UniqueFd direct(
        retry_eintr([&] { return ::open(same_file.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT); }));
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
    const uint64_t left =
        (end - place + kDirectAlignment - 1) / kDirectAlignment * kDirectAlignment;
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
