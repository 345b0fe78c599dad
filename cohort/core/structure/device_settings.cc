#include "cohort/core/structure/device_settings.h"

#include <ATen/Context.h>
#include <c10/core/Device.h>
#include <torch/version.h>

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 11)
#include <c10/core/CachingDeviceAllocator.h>
#define COHORT_CAN_COUNT_MEMORY 1
#endif

#include <cstdlib>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/text.h"

namespace cohort {
namespace {

using internal::quoted;
using internal::str;

internal::DeviceMemoryCounter counter_of_test = {};

c10::Device gpu_of(std::string_view name) {
  const c10::Device device = internal::torch_device(name);
  if (!device.is_cpu()) return device;
  throw InvalidArgumentError(str(quoted(name), " is a CPU: only the memory of GPUs is counted"));
}

#ifdef COHORT_CAN_COUNT_MEMORY
c10::DeviceAllocator& allocator_of(c10::Device device) {
  return *c10::getDeviceAllocator(device.type());
}
#else
[[noreturn]] void throw_cannot_count() {
  throw UnimplementedError(
      str("libtorch ", TORCH_VERSION, " does not say how much memory its devices use; 2.11 does"));
}
#endif

}  // namespace

namespace config {

void enable_tensor_float_32_execution(bool enabled) {
  at::globalContext().setAllowTF32CuBLAS(enabled);
  at::globalContext().setAllowTF32CuDNN(enabled);
}

bool tensor_float_32_execution_enabled() {
  return at::globalContext().allowTF32CuBLAS() && at::globalContext().allowTF32CuDNN();
}

void enable_op_determinism() {
  const char* const set = std::getenv("CUBLAS_WORKSPACE_CONFIG");
  const std::string workspace = set != nullptr ? set : "";
  if (internal::has_gpus() && workspace != ":4096:8" && workspace != ":16:8") {
    throw FailedPreconditionError(str(
        "enable_op_determinism: cuBLAS gives the same bits each time only where the environment "
        "has CUBLAS_WORKSPACE_CONFIG=:4096:8 (or :16:8, slower) when the program starts; it is ",
        set != nullptr ? quoted(workspace) : "not set"));
  }
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);  // it would choose kernels by their time
}

MemoryInfo get_memory_info(std::string_view device) {
  const c10::Device gpu = gpu_of(device);
  if (!gpu.is_cuda()) return counter_of_test.count(gpu.index());
#ifdef COHORT_CAN_COUNT_MEMORY
  const auto bytes =
      allocator_of(gpu).getDeviceStats(gpu.index()).allocated_bytes[0];  // of all pools
  return {.current = bytes.current, .peak = bytes.peak};
#else
  throw_cannot_count();
#endif
}

void reset_memory_stats(std::string_view device) {
  const c10::Device gpu = gpu_of(device);
  if (!gpu.is_cuda()) return counter_of_test.reset(gpu.index());
#ifdef COHORT_CAN_COUNT_MEMORY
  allocator_of(gpu).resetPeakStats(gpu.index());
#else
  throw_cannot_count();
#endif
}

}  // namespace config

namespace internal {

void set_memory_counter_for_testing(const DeviceMemoryCounter& counter) {
  counter_of_test = counter;
}

}  // namespace internal

}  // namespace cohort
