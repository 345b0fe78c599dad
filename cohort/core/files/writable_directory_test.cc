#include "cohort/core/files/writable_directory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_folder.h"

namespace cohort::internal {
namespace {

TEST(WritableDirectory, OneThatCanBeMadeIsAndIsNotMade) {
  const TemporaryFolder folder;
  check_directory_is_writable(folder.path());
  check_directory_is_writable(folder / "a/b//c/");
  check_directory_is_writable("a/b");
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST(WritableDirectory, WhatLiesBelowAFileIsNot) {
  const TemporaryFolder folder;
  folder.write("file", "text");
  for (const char* below : {"file", "file/", "file/a/b"}) {
    expect_error<NotFoundError>([&] { check_directory_is_writable(folder / below); },
                                folder / below + "' failed: Not a directory");
  }
}

TEST(WritableDirectory, WhatNobodyMayWriteToIsNot) {
  // Also for root, who may write to all that is not the kernel's.
  const std::string kernels = "/proc/sys/kernel/cohort/a";
  EXPECT_THROW(check_directory_is_writable(kernels), Error);
}

}  // namespace
}  // namespace cohort::internal
