#include "cohort/core/intra_op_parallel.h"

#include <ATen/Parallel.h>

namespace cohort::internal {

void intra_op_parallel_for(int64_t begin, int64_t end, int64_t grain,
                           FunctionRef<void(int64_t, int64_t)> body) {
  at::parallel_for(begin, end, grain, [&](int64_t first, int64_t last) { body(first, last); });
}

}  // namespace cohort::internal
