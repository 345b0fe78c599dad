// NVIDIA's NCCL, opened while the program runs: no build needs its headers or its library.
#pragma once

#include <cstddef>
#include <string>

namespace cohort::collective::nccl {

// What this library uses of NCCL 2.14 and later versions of NCCL 2, as their ABI has it.

enum Result : int {
  kSuccess = 0,
  kInvalidUsage = 5,
  kInProgress = 7,
};

enum DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};

enum Operation : int { kSum = 0 };

class NcclComm;
using Comm = NcclComm*;

struct UniqueId {
  char bytes[128];
};

// The configuration of 2.14, which later versions read, too.
struct Config {
  size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 0;
};

struct Library {
  Result (*get_version)(int* version);
  const char* (*get_error_string)(Result result);
  Result (*get_unique_id)(UniqueId* id);
  Result (*comm_init_rank_config)(Comm* comm, int ranks, UniqueId id, int rank, Config* config);
  Result (*comm_get_async_error)(Comm comm, Result* state);
  Result (*comm_abort)(Comm comm);
  Result (*group_start)();
  Result (*group_end)();
  Result (*all_reduce)(const void* send, void* receive, size_t count, DataType type,
                       Operation operation, Comm comm, void* stream);
  Result (*reduce)(const void* send, void* receive, size_t count, DataType type,
                   Operation operation, int root, Comm comm, void* stream);
  Result (*broadcast)(const void* send, void* receive, size_t count, DataType type, int root,
                      Comm comm, void* stream);
};

// Opens the library of this name or path, which then stays open.
// Errors: FailedPrecondition (it cannot be opened, is none of NCCL, or of another version; says
// what to do).
Library open_library(const std::string& path);

// The process's NCCL: what COHORT_NCCL_LIBRARY names, else libnccl.so.2. Opened by the first call
// that succeeds.
// Errors: those of open_library. Thread safety: any thread.
const Library& library();

}  // namespace cohort::collective::nccl
