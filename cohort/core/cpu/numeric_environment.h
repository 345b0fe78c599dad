// The conditions beside the program that decide the bits of a computation: libtorch, the processor,
// BLAS, threads, GPUs.
#pragma once

#include <string>

namespace cohort::internal {

// Lines "what: value". They are the same on two machines (or processes) if the same operations give
// the same bits there, as far as this can be told. The last line is a hash of the results of a few
// small operations, which shows differences that names do not. The text is that for the calling
// thread's number of threads. Takes a few milliseconds.
// Thread safety: any thread.
std::string numeric_environment();

}  // namespace cohort::internal
