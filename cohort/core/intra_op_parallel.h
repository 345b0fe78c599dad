// Work that the threads of one tensor operation share.
#pragma once

#include <cstdint>

#include "cohort/core/function_ref.h"

namespace cohort::internal {

// at::parallel_for as libtorch's own operations have it: body(first, last) for parts of
// [begin, end) of `grain` at least, on the calling thread's intra-op threads, of which it is one.
// Included elsewhere at::parallel_for is a plain loop: libtorch's headers start threads only in
// what is compiled with OpenMP. Where this library is built with sanitizers or by another compiler
// than GCC, body is called once, for all. Errors: one that body throws.
void intra_op_parallel_for(int64_t begin, int64_t end, int64_t grain,
                           FunctionRef<void(int64_t, int64_t)> body);

}  // namespace cohort::internal
