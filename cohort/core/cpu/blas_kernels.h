// Whether the BLAS that libtorch uses runs the kernels that this processor is made for.
#pragma once

#include <string_view>

namespace cohort::internal {

// What a processor has, of what OpenBLAS has kernels for.
struct VectorUnits {
  bool avx2 = false;
  bool avx512 = false;  // F, BW, DQ and VL
};
VectorUnits vector_units();

// Those of this process: OpenBLAS's name for them; "" where libtorch uses another BLAS.
std::string_view blas_kernels();

// The value of OPENBLAS_CORETYPE that serves a processor better than the kernels that OpenBLAS
// picked by itself, `chosen` ("Prescott"); "" where they will do. OpenBLAS knows processors by their
// model, and gives those that are newer than itself kernels for SSE3.
std::string_view better_blas_kernels(std::string_view chosen, const VectorUnits& units);
// Of this process and processor; "" too where libtorch uses another BLAS. Thread safety: any thread.
std::string_view better_blas_kernels();

// Logs a warning, once a process, where there are better ones. Thread safety: any thread.
void warn_of_slow_blas();

}  // namespace cohort::internal
