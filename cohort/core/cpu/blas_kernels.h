// Whether the BLAS that libtorch uses runs the kernels that this processor is made for.
#pragma once

#include <string_view>

namespace cohort::internal {

// The vector units of a processor for which OpenBLAS has kernels.
struct VectorUnits {
  bool avx2 = false;
  bool avx512 = false;  // F, BW, DQ and VL
};
VectorUnits vector_units();

// OpenBLAS's name for the kernels that this process uses; "" if libtorch uses another BLAS.
std::string_view blas_kernels();

// The value of OPENBLAS_CORETYPE that serves a processor better than `chosen` ("Prescott"), the
// kernels that OpenBLAS has picked by itself; "" if these will do. OpenBLAS knows processors by
// their model, and gives models that are newer than itself kernels for SSE3.
std::string_view better_blas_kernels(std::string_view chosen, const VectorUnits& units);
// The value for this process and processor; also "" if libtorch uses another BLAS.
// Thread safety: any thread.
std::string_view better_blas_kernels();

// Logs a warning, once a process, where there are better ones. Thread safety: any thread.
void warn_of_slow_blas();

}  // namespace cohort::internal
