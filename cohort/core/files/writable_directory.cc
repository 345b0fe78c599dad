#include "cohort/core/files/writable_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "cohort/core/files/file_system.h"
#include "cohort/core/host/posix_error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// An errno, 0 for success: of the nearest that exists, from `path` on upwards.
int error_of_writing(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const std::string parent = parent_directory(path);
    return errno == ENOENT && parent != path ? error_of_writing(parent) : errno;
  }
  if (!S_ISDIR(status.st_mode)) return ENOTDIR;
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

}  // namespace

void check_directory_is_writable(const std::string& path) {
  if (const int error = error_of_writing(path)) {
    throw_errno(error, str("writing into directory ", quoted(path)));
  }
}

}  // namespace cohort::internal
