#include "cohort/core/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/posix_io.h"
#include "cohort/core/host/posix_error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

MappedFile::MappedFile(std::string path)
    : path_(std::move(path)), fd_(retry_eintr([this] {
        return ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
      })) {
  if (!fd_.valid()) throw_errno(errno, "opening " + quoted(path_));
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) throw_errno(errno, "examining " + quoted(path_));
  if (!S_ISREG(status.st_mode)) {
    throw InvalidArgumentError(str(quoted(path_), " cannot be mapped: it is no regular file"));
  }
  size_ = static_cast<uint64_t>(status.st_size);
  if (size_ == 0) return;
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_.get(), 0);
  if (data == MAP_FAILED) throw_errno(errno, str("mapping ", size_, " bytes of ", quoted(path_)));
  data_ = static_cast<char*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void MappedFile::write(uint64_t offset, std::string_view bytes) const {
  const std::string same_file = "/proc/self/fd/" + decimal_digits(fd_.get());
  const UniqueFd fd(retry_eintr([&] { return ::open(same_file.c_str(), O_WRONLY | O_CLOEXEC); }));
  if (!fd.valid()) throw_errno(errno, "opening " + quoted(path_) + " to write");
  while (!bytes.empty()) {
    const ssize_t written = retry_eintr(
        [&] { return ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (written <= 0) throw_errno(written < 0 ? errno : EIO, "writing " + quoted(path_));
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
}

}  // namespace cohort::internal
