// What decides the bits of a computation beside the program: libtorch, the processor, BLAS, threads.
#pragma once

#include <string>

namespace cohort::internal {

// Lines "what: value", the same on two machines (or processes) if the same operations give the same
// bits there, as far as can be told. The last is a hash of what a few small operations gave, which
// notices what names do not. Of the calling thread's number of threads. Takes a few milliseconds.
// Thread safety: any thread.
std::string numeric_environment();

}  // namespace cohort::internal
