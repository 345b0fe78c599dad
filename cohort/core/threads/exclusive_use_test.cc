#include "cohort/core/threads/exclusive_use.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

TEST(ExclusiveUseTest, ASecondUserIsRefusedUntilTheFirstIsDone) {
  ExclusiveUse use;
  std::optional<ExclusiveUse::Hold> first;
  first.emplace(use, "the thing");
  std::thread([&] {
    expect_error<FailedPreconditionError>([&] { const ExclusiveUse::Hold hold(use, "the thing"); },
                                          "the thing was used while it is in use already");
  }).join();
  first.reset();
  const ExclusiveUse::Hold again(use, "the thing");
}

}  // namespace
}  // namespace cohort::internal
