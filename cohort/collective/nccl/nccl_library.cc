#include "cohort/collective/nccl/nccl_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "cohort/core/error.h"

namespace cohort::collective::nccl {
namespace {

using internal::str;

constexpr const char* kVariable = "COHORT_NCCL_LIBRARY";
constexpr int kLeastVersion = 21400;  // communicators that do not block
constexpr int kNextMajor = 30000;

template <class Function>
void find(void* library, const std::string& path, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function != nullptr) return;
  throw FailedPreconditionError(str(path, " has no ", name, ", which Cohort needs of NCCL 2.14 or ",
                                    "later: install NVIDIA's libnccl2, or let ", kVariable,
                                    " name another library"));
}

std::string text_of_version(int version) {
  const int major = version < 10000 ? version / 1000 : version / 10000;
  const int minor = version < 10000 ? version / 100 % 10 : version / 100 % 100;
  return str(major, '.', minor, '.', version % 100);
}

void check_version(const Library& library, const std::string& path) {
  int version = 0;
  if (library.get_version(&version) == kSuccess && version >= kLeastVersion &&
      version < kNextMajor) {
    return;
  }
  throw FailedPreconditionError(
      str(path, " is NCCL ", text_of_version(version), "; Cohort needs 2.14 or a later 2: install ",
          "NVIDIA's libnccl2, or let ", kVariable, " name another library"));
}

}  // namespace

Library open_library(const std::string& path) {
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw FailedPreconditionError(str("NCCL cannot be opened (", ::dlerror(),
                                      "): install NVIDIA's libnccl2, or let ", kVariable,
                                      " name the library"));
  }
  Library library = {};
  find(handle, path, "ncclGetVersion", library.get_version);
  check_version(library, path);
  find(handle, path, "ncclGetErrorString", library.get_error_string);
  find(handle, path, "ncclGetUniqueId", library.get_unique_id);
  find(handle, path, "ncclCommInitRankConfig", library.comm_init_rank_config);
  find(handle, path, "ncclCommGetAsyncError", library.comm_get_async_error);
  find(handle, path, "ncclCommAbort", library.comm_abort);
  find(handle, path, "ncclGroupStart", library.group_start);
  find(handle, path, "ncclGroupEnd", library.group_end);
  find(handle, path, "ncclAllReduce", library.all_reduce);
  find(handle, path, "ncclReduce", library.reduce);
  find(handle, path, "ncclBroadcast", library.broadcast);
  return library;
}

const Library& library() {
  static const Library opened = [] {
    const char* const path = std::getenv(kVariable);
    return open_library(path != nullptr && *path != '\0' ? path : "libnccl.so.2");
  }();
  return opened;
}

}  // namespace cohort::collective::nccl
