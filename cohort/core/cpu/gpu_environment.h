// The conditions that decide the bits of a computation on GPUs.
#pragma once

#include <string>

namespace cohort::internal {

// Lines "what: value", for numeric_environment: models of GPUs, driver, CUDA, cuDNN, and how they
// round. Empty where libtorch sees no GPU.
std::string gpu_environment();

// The models, each once, in the order of their names, and the version of the driver, which the
// driver shows in a folder. "unknown" where it does not.
struct GpuDriver {
  std::string models;
  std::string version;
};
GpuDriver read_gpu_driver(const std::string& folder = "/proc/driver/nvidia");

}  // namespace cohort::internal
