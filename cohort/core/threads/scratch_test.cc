#include "cohort/core/threads/scratch.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

namespace cohort::internal {
namespace {

struct Purpose;
using Numbers = Scratch<int, Purpose>;

TEST(Scratch, IsEmptyEachTimeInTheSameMemory) {
  const int* memory = nullptr;
  {
    Numbers numbers;
    numbers->assign(100, 7);
    memory = numbers->data();
  }
  Numbers again;
  EXPECT_TRUE(again->empty());
  again->push_back(1);
  EXPECT_EQ(again->data(), memory);
}

TEST(Scratch, ACallInsideOfAnotherHasAListOfItsOwn) {
  Numbers outer;
  outer->push_back(1);
  {
    Numbers inner;
    EXPECT_TRUE(inner->empty());
    inner->push_back(2);
  }
  EXPECT_EQ(*outer, std::vector<int>{1});
}

TEST(Scratch, KeepsNoElements) {
  const auto shared = std::make_shared<int>(1);
  try {
    Scratch<std::shared_ptr<int>, Purpose> pointers;
    pointers->push_back(shared);
    throw std::runtime_error("in the call");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(Scratch, GivesElementsAwayInAListOfTheirSize) {
  Numbers numbers;
  numbers->assign({3, 4, 5});
  const std::vector<int> taken = numbers.take();
  EXPECT_EQ(taken, (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(taken.capacity(), 3u);
}

}  // namespace
}  // namespace cohort::internal
