#include "cohort/core/cpu/gpu_environment.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cohort/core/testing_folder.h"

namespace cohort::internal {
namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

TEST(GpuEnvironment, ReadsWhatTheDriverShows) {
  const TemporaryFolder folder;
  const std::filesystem::path shown = folder / "nvidia";
  write(shown / "version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
        "GCC version:  gcc version 12.2.0\n");
  write(shown / "gpus/0000:19:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 77\n");
  write(shown / "gpus/0000:3b:00.0/information", "Model: \t\t NVIDIA H200\n");
  write(shown / "gpus/0000:4c:00.0/information", "Model: \t\t NVIDIA A100-SXM4-80GB\n");
  const GpuDriver driver = read_gpu_driver(shown);
  EXPECT_EQ(driver.models, "NVIDIA A100-SXM4-80GB, NVIDIA H200");
  EXPECT_EQ(driver.version, "580.95.05");
}

TEST(GpuEnvironment, IsUnknownWhereNoDriverShowsIt) {
  const TemporaryFolder folder;
  const GpuDriver driver = read_gpu_driver(folder / "missing");
  EXPECT_EQ(driver.models, "unknown");
  EXPECT_EQ(driver.version, "unknown");
}

}  // namespace
}  // namespace cohort::internal
