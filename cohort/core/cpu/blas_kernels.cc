#include "cohort/core/cpu/blas_kernels.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "cohort/core/observe/logging.h"

namespace cohort::internal {
namespace {

// OpenBLAS's kernels for processors without AVX.
constexpr std::array<std::string_view, 13> kOldKernels = {
    "Katmai",     "Coppermine", "Northwood", "Prescott", "Banias",    "Core2",  "Penryn",
    "Dunnington", "Nehalem",    "Athlon",    "Opteron",  "Barcelona", "Generic"};

// The name of the kernels; nullptr if libtorch uses another BLAS. The function is found by name,
// because it is not known at build time which BLAS libtorch uses.
const char* kernels_in_use() {
  const auto get =
      reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return get == nullptr ? nullptr : get();
}

}  // namespace

VectorUnits vector_units() {
#if defined(__x86_64__)
  return {
      .avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0,
      .avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0};
#else
  return {};
#endif
}

std::string_view blas_kernels() {
  const char* const name = kernels_in_use();
  return name == nullptr ? "" : name;
}

std::string_view better_blas_kernels(std::string_view chosen, const VectorUnits& units) {
  if (std::find(kOldKernels.begin(), kOldKernels.end(), chosen) == kOldKernels.end()) return "";
  if (units.avx512) return "SkylakeX";
  return units.avx2 ? "Haswell" : "";
}

std::string_view better_blas_kernels() {
  const char* const chosen = kernels_in_use();
  return chosen == nullptr ? "" : better_blas_kernels(chosen, vector_units());
}

void warn_of_slow_blas() {
  // A static object is made once, whatever the number of threads.
  static const bool warned = [] {
    const std::string_view better = better_blas_kernels();
    if (better.empty()) return false;
    log_warning("OpenBLAS does not know this processor and runs its kernels '", kernels_in_use(),
                "', several times slower than it could; set OPENBLAS_CORETYPE=", better,
                " in the environment of the program (OpenBLAS reads it when it is loaded)");
    return true;
  }();
  static_cast<void>(warned);
}

}  // namespace cohort::internal
