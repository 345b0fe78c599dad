#include "cohort/core/host/posix_error.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// ENOTSUPP of the kernel, for which the C library has no name.
constexpr int kKernelsUnsupported = 524;

// Advice for the user, if there is some.
std::string_view advice(int error_number) {
  switch (error_number) {
    case ENOENT:
      return "; there is no such file, or its directory is missing";
    case EACCES:
    case EPERM:
      return "; check the owner and mode of the file and of its directory";
    case ELOOP:
      return "; a symbolic link is not followed here";
    case ENOSPC:
      return "; free some space on that file system";
    case EDQUOT:
      return "; free some space or have the quota raised";
    case EFBIG:
      return "; the file system or the process (ulimit -f) allows no file of that size";
    case EMFILE:
      return "; raise the limit of open files (ulimit -n)";
    case EIO:
      return "; the device failed: take what was written last for lost";
    case EROFS:
      return "; the file system is mounted read-only, as some are after an error of their device: "
             "remount it or use another directory";
    default:
      return "";
  }
}

}  // namespace

Code errno_code(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EEXIST:
      return Code::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
      return Code::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOLCK:
      return Code::kResourceExhausted;
    case ENAMETOOLONG:
    case EISDIR:
    case EINVAL:
    case EXDEV:
      return Code::kInvalidArgument;
    case ENOTEMPTY:
    case EBUSY:
    case ETXTBSY:
      return Code::kFailedPrecondition;
    case ENOSYS:
    case EOPNOTSUPP:
    case kKernelsUnsupported:
      return Code::kUnimplemented;
    default:
      return Code::kDataLoss;
  }
}

bool is_unsupported(int error_number) { return errno_code(error_number) == Code::kUnimplemented; }

void throw_errno(int error_number, std::string_view action) {
  std::string_view words = errno_text(error_number);
  const char* name = ::strerrorname_np(error_number);
  if (error_number == kKernelsUnsupported) {
    words = "Operation not supported";
    name = "ENOTSUPP";
  }
  const std::string text =
      str(action, " failed: ", words, " (", name != nullptr ? name : decimal_digits(error_number),
          ")", advice(error_number));
  switch (errno_code(error_number)) {
    case Code::kNotFound:
      throw NotFoundError(text);
    case Code::kAlreadyExists:
      throw AlreadyExistsError(text);
    case Code::kPermissionDenied:
      throw PermissionDeniedError(text);
    case Code::kResourceExhausted:
      throw ResourceExhaustedError(text);
    case Code::kInvalidArgument:
      throw InvalidArgumentError(text);
    case Code::kFailedPrecondition:
      throw FailedPreconditionError(text);
    case Code::kUnimplemented:
      throw UnimplementedError(text);
    default:
      throw DataLossError(text);
  }
}

}  // namespace cohort::internal
