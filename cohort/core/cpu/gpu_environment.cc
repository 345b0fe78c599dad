#include "cohort/core/cpu/gpu_environment.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

constexpr std::string_view kBlanks = " \t";

// What stands behind `key` in the lines of a file; empty if nothing does.
std::string value_in(const std::filesystem::path& file, std::string_view key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const size_t begin = line.find_first_not_of(kBlanks, key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// "580.95.05" of "NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build ...".
std::string version_in(const std::string& text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos) {
      return word;
    }
    begin = end + 1;
  }
  return "unknown";
}

}  // namespace

GpuDriver read_gpu_driver(const std::string& folder) {
  std::set<std::string> models;
  std::error_code missing;
  for (const auto& gpu : std::filesystem::directory_iterator(folder + "/gpus", missing)) {
    models.insert(value_in(gpu.path() / "information", "Model:"));
  }
  models.erase("");
  GpuDriver driver{.models = models.empty() ? "unknown" : "",
                   .version = version_in(value_in(folder + "/version", "NVRM version:"))};
  for (const std::string& model : models) {
    driver.models += (driver.models.empty() ? "" : ", ") + model;
  }
  return driver;
}

std::string gpu_environment() {
  if (!at::hasCUDA()) return "";
  const GpuDriver driver = read_gpu_driver();
  const auto& hooks = at::detail::getCUDAHooks();
  const auto& context = at::globalContext();
  const auto on = [](bool is_on) { return is_on ? "on" : "off"; };
  return str("GPUs: ", driver.models, "\nGPU driver: ", driver.version,
             "\nCUDA: ", hooks.versionCUDART(), "\ncuDNN: ", hooks.versionCuDNN(),
             "\nTensorFloat-32 of products: ", on(context.allowTF32CuBLAS()),
             "\nTensorFloat-32 of convolutions: ", on(context.allowTF32CuDNN()),
             "\nchoice of cuDNN's kernels by time: ", on(context.benchmarkCuDNN()), '\n');
}

}  // namespace cohort::internal
