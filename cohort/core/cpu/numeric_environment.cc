#include "cohort/core/cpu/numeric_environment.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/matmul.h>
#include <torch/version.h>

#include <cstdlib>
#include <string_view>

#include "cohort/core/bytes/fingerprint.h"
#include "cohort/core/cpu/blas_kernels.h"
#include "cohort/core/cpu/gpu_environment.h"
#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

std::string_view bytes_of(const at::Tensor& value) {
  return {static_cast<const char*>(value.data_ptr()), value.nbytes()};
}

// Hashes results of operations on numbers between -2 and 2, few of which have a short form. One sum
// is long enough for several threads to share, and one so short that a single thread takes it.
std::string hash_of_kernels() {
  const at::NoGradGuard no_grad;
  const auto numbers = [](int64_t count) {
    return at::arange(count, at::kFloat).mul_(0.7390851f).remainder_(4.0f).sub_(2.0f);
  };
  std::string bytes;
  const auto add = [&bytes](const at::Tensor& value) { bytes += bytes_of(value.contiguous()); };
  const at::Tensor few = numbers(1009), many = numbers(70'001);
  add(few.sum());
  add(many.sum());
  add(few.exp());
  add(few.tanh());
  add(few.addcdiv(few, few.square().sqrt().add(1e-7f), -0.01f));  // as optimizers update
  add(at::matmul(numbers(31 * 67).view({31, 67}), numbers(67 * 17).view({67, 17})));
  add(at::conv2d(numbers(2 * 3 * 12 * 12).view({2, 3, 12, 12}),
                 numbers(5 * 3 * 3 * 3).view({5, 3, 3, 3})));
  return hex_digits(fingerprint64(bytes), 16);
}

// What libraries choose their kernels by.
std::string_view processor() {
#if defined(__x86_64__)
  const VectorUnits units = vector_units();
  if (units.avx512) return "AVX-512";
  return units.avx2 ? "AVX2" : "neither AVX2 nor AVX-512";
#elif defined(__aarch64__)
  return "ARM64";
#else
  return "unknown";
#endif
}

}  // namespace

std::string numeric_environment() {
  const char* const level = std::getenv("ATEN_CPU_CAPABILITY");
  const std::string_view kernels = blas_kernels();
  return str("libtorch: ", TORCH_VERSION, "\nprocessor: ", processor(),
             "\nATEN_CPU_CAPABILITY: ", level != nullptr ? level : "", "\nBLAS kernels: ", kernels,
             "\nMKLDNN: ", at::globalContext().userEnabledMkldnn() ? "on" : "off",
             "\nthreads of an operation: ", intra_op_threads(), "\ndeterministic algorithms: ",
             at::globalContext().deterministicAlgorithms() ? "on" : "off", '\n', gpu_environment(),
             "results of small operations: ", hash_of_kernels(), '\n');
}

}  // namespace cohort::internal
