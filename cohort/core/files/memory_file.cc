#include "cohort/core/files/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cohort/core/error.h"
#include "cohort/core/files/posix_io.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

[[noreturn]] void throw_no_memory(const std::string& name, int error) {
  throw ResourceExhaustedError(
      str("cannot keep ", quoted(name), " in memory: ", errno_text(error)));
}

}  // namespace

MemoryFile::MemoryFile(const std::string& name, const std::string& bytes)
    : fd_(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (!fd_.valid()) throw_no_memory(name, errno);
  // A new file of this kind is readable by everybody who can see the process's descriptors.
  if (::fchmod(fd_.get(), 0600) != 0) throw_no_memory(name, errno);
  if (const Transfer written = write_all(fd_.get(), bytes); written.error_number != 0) {
    throw_no_memory(name, written.error_number);
  }
  constexpr int kNoChanges = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (::fcntl(fd_.get(), F_ADD_SEALS, kNoChanges) != 0) throw_no_memory(name, errno);
  // The number is needed: "self" is another process to each reader.
  path_ = str("/proc/", ::getpid(), "/fd/", fd_.get());
}

}  // namespace cohort::internal
