// Names of functions by address, those too that a library does not export.
#pragma once

#include <string>

namespace bench {

struct Symbol {
  std::string module;  // "libtorch_cpu.so.1.13"
  const void* base = nullptr;
  std::string mangled;   // empty where the file does not name the function
  std::string function;  // the same, readable
};

// The function that `address` lies in. Thread safety: one thread.
Symbol symbol_at(void* address);

}  // namespace bench
