#include "cohort/collective/shared_memory/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/posix_io.h"
#include "cohort/core/text.h"

namespace cohort::collective::shared_memory {
namespace {

using internal::str;

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

Mapping::Mapping(int fd, int64_t begin, int64_t bytes) : bytes_(bytes) {
  // Populated now: a step should not pay for page faults.
  void* data = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, fd, begin);
  if (data == MAP_FAILED) {
    throw ResourceExhaustedError(str("cannot map ", bytes, " bytes of shared memory: ",
                                     internal::errno_text(errno), "; see `ulimit -v`"));
  }
  data_ = static_cast<char*>(data);
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(bytes_));
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedFile::SharedFile(int64_t bytes)
    : fd_(::memfd_create("cohort", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  int error = fd_.valid() ? internal::set_size(fd_.get(), static_cast<uint64_t>(bytes)) : errno;
  if (error == 0 && ::fcntl(fd_.get(), F_ADD_SEALS, kSeals) != 0) error = errno;
  if (error != 0) {
    throw ResourceExhaustedError(
        str("cannot make a file of ", bytes, " bytes in memory: ", internal::errno_text(error)));
  }
}

SharedFile::SharedFile(internal::UniqueFd fd, int64_t bytes) : fd_(std::move(fd)) {
  struct stat status {};
  const int seals = ::fcntl(fd_.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(fd_.get(), &status) != 0 ||
      status.st_size != bytes) {
    throw DataLossError(str("what came as shared memory is no sealed file of ", bytes, " bytes"));
  }
}

void SharedFile::reserve(int64_t begin, int64_t bytes) const {
  int error = EINTR;
  while (error == EINTR) error = ::posix_fallocate(fd_.get(), begin, bytes);
  if (error != 0) {
    throw ResourceExhaustedError(
        str("no memory for ", bytes, " shared bytes: ", internal::errno_text(error)));
  }
}

}  // namespace cohort::collective::shared_memory
