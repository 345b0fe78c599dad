// Makes one of the typed errors that file_system.h lists from the errno of a system call.
//
//   if (::fsync(fd) != 0) throw_errno(errno, "syncing " + quoted(path));
//   // DataLossError: syncing 'ckpt/a' failed: Input/output error (EIO); the device ...
#pragma once

#include <string_view>

#include "cohort/core/error.h"

namespace cohort::internal {

Code errno_code(int error_number);
// Whether this errno says that a file system has no such operation: ENOSYS, EOPNOTSUPP, and the
// kernel's own ENOTSUPP, which NFS and Lustre let through to programs.
bool is_unsupported(int error_number);
// `action` names what failed, with the path: "creating 'a'".
[[noreturn]] void throw_errno(int error_number, std::string_view action);

}  // namespace cohort::internal
