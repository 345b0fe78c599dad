// For tests: a library with NCCL's calls for simulated GPUs (fake_nccl.cc), in place of NVIDIA's.
#pragma once

#include <cstdlib>
#include <string>

namespace cohort::testing {

// The library's file.
inline std::string fake_nccl() { return COHORT_FAKE_NCCL; }

// Lets this process, and those that it starts, open it for NCCL. Before the first group forms.
inline void use_fake_nccl() { ::setenv("COHORT_NCCL_LIBRARY", COHORT_FAKE_NCCL, 1); }

// What the library does wrong while this lives: fake_nccl.cc names the variables. No other thread
// may call getenv at either end.
class NcclFault {
 public:
  NcclFault(const char* variable, const std::string& value) : variable_(variable) {
    ::setenv(variable, value.c_str(), 1);
  }
  ~NcclFault() { ::unsetenv(variable_); }
  NcclFault(const NcclFault&) = delete;
  NcclFault& operator=(const NcclFault&) = delete;

 private:
  const char* const variable_;
};

}  // namespace cohort::testing
