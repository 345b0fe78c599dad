#include "cohort/core/handle.h"

#include <gtest/gtest.h>

#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

using Text = Handle<std::string, "Text">;

TEST(HandleTest, IsThePointerUntilItIsMovedFrom) {
  Text text(std::make_shared<std::string>("value"));
  const Text copy = text;
  EXPECT_EQ(*text, "value");
  EXPECT_EQ(text->size(), 5U);
  EXPECT_EQ(text, copy);
  const Text taken = std::move(text);
  EXPECT_EQ(*taken, "value");
  EXPECT_TRUE(text.empty());
  expect_error<FailedPreconditionError>([&] { text->size(); }, "this Text was moved from");
  expect_error<FailedPreconditionError>([&] { *text = ""; }, "this Text was moved from");
  expect_error<FailedPreconditionError>([&] { text.pointer(); }, "this Text was moved from");
  text = taken;
  EXPECT_EQ(*text, "value");
}

TEST(HandleTest, HoldsUniquePointersToo) {
  Handle<int, "Number", std::unique_ptr<int>> number(std::make_unique<int>(3));
  const auto taken = std::move(number);
  EXPECT_EQ(*taken, 3);
  expect_error<FailedPreconditionError>([&] { *number = 4; }, "this Number was moved from");
}

}  // namespace
}  // namespace cohort::internal
