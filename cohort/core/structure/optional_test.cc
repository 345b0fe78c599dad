#include "cohort/core/structure/optional.h"

#include <gtest/gtest.h>

#include <memory>

#include "cohort/core/structure/structure.h"

namespace cohort {
namespace {

TEST(Optional, GivesItsValue) {
  const Optional<int> three = 3;
  EXPECT_TRUE(three.has_value());
  EXPECT_EQ(three.get_value(), 3);
  EXPECT_EQ(*three, 3);
  EXPECT_EQ(*Optional<std::unique_ptr<int>>(std::make_unique<int>(4)).get_value(), 4);
}

TEST(Optional, WithoutAValueIsAnErrorToAsk) {
  const Optional<int> nothing = std::optional<int>();
  EXPECT_FALSE(nothing.has_value());
  EXPECT_THROW(nothing.get_value(), InvalidArgumentError);
  EXPECT_THROW(Optional<int>().get_value(), InvalidArgumentError);
}

TEST(Optional, PrintsTheElementOrThatThereIsNone) {
  EXPECT_EQ(internal::str(std::optional<Structure>(tuple(1, 2))), "(1, 2)");
  EXPECT_EQ(internal::str(Optional<Structure>()), "nullopt");
}

}  // namespace
}  // namespace cohort
