#include "cohort/cluster/json_document.h"

#include <gtest/gtest.h>

#include "cohort/core/testing_locale.h"

namespace cohort::internal {
namespace {

// The parser puts the first byte of the decimal point of the locale before what it gives to strtod.
TEST(JsonDocumentTest, NumbersAreTheSameInEveryLocale) {
  const auto expect_numbers = [] {
    const auto numbers =
        parse_json("[2.5, -1e-3, 1500]", {.source = "a", .bytes = 100, .depth = 2});
    EXPECT_EQ(numbers[0].get<double>(), 2.5);
    EXPECT_EQ(numbers[1].get<double>(), -1e-3);
    EXPECT_EQ(numbers[2].get<int>(), 1500);
    EXPECT_EQ(numbers.dump(), "[2.5,-0.001,1500]");
  };
  for_each_locale(expect_numbers);
  const ScopedLocale pashto("ps_AF.UTF-8");  // whose decimal point has two bytes
  expect_numbers();
}

}  // namespace
}  // namespace cohort::internal
