// Who allocates: counts the process's allocations by the function that asked for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct Caller {
  std::string module;    // "libtorch_cpu.so.1.13"
  std::string mangled;   // empty where the module does not name the function
  std::string function;  // the same, readable
  int64_t allocations = 0;
};

// Counts malloc, calloc, realloc, aligned allocation, operator new and mmap between start and stop.
// An allocation belongs to the innermost frame outside of libc and the standard library, its
// templates included.
// Thread safety: one thread calls them; all threads' allocations count.
void start_counting_allocations();
// Most allocations first.
std::vector<Caller> stop_counting_allocations();

}  // namespace bench
