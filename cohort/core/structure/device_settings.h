// What GPUs compute with, whether they compute it twice alike, and the memory that they use: as
// tf.config.experimental.
//
//   config::enable_tensor_float_32_execution(true);   // products of float32 several times as fast
//   config::get_memory_info("GPU:0").peak;            // bytes
#pragma once

#include <cstdint>
#include <string_view>

#include "cohort/core/export.h"

namespace cohort {

namespace config {

// Whether GPUs since Ampere round the factors of float32 products, and of convolutions, to
// TensorFloat-32, which has 10 bits of float32's 23. Other GPUs and CPUs take no notice. By default
// convolutions do and products do not, as libtorch has it.
// Thread safety: none; before training.
COHORT_API void enable_tensor_float_32_execution(bool enabled);
// Whether both products and convolutions do.
COHORT_API bool tensor_float_32_execution_enabled();

// Operations give the same bits, from this call on, each time they get the same values on the same
// devices; random numbers do so by their seed. Operations of libtorch that cannot throw
// InvalidArgument, with their name. Costs time: slower kernels are chosen. Cannot be undone.
// Thread safety: none; before training.
// Errors: FailedPrecondition (there are GPUs, and the environment lacks CUBLAS_WORKSPACE_CONFIG
// with :4096:8 or :16:8, which cuBLAS reads when it begins).
COHORT_API void enable_op_determinism();

// Bytes of tensors on a device.
struct MemoryInfo {
  int64_t current = 0;
  int64_t peak = 0;  // since the program began, or since reset_memory_stats
};

// Thread safety: any thread.
// Errors: InvalidArgument (no such device, or a CPU), Unimplemented (a libtorch with CUDA before
// 2.11).
COHORT_API MemoryInfo get_memory_info(std::string_view device);
// Sets the peak to what is current. Errors: as get_memory_info.
COHORT_API void reset_memory_stats(std::string_view device);

}  // namespace config

namespace internal {
// Counts the memory of devices that are not CUDA's. For tests.
struct DeviceMemoryCounter {
  config::MemoryInfo (*count)(int device);
  void (*reset)(int device);
};
void set_memory_counter_for_testing(const DeviceMemoryCounter& counter);
}  // namespace internal

}  // namespace cohort
