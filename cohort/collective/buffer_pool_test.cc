#include "cohort/collective/buffer_pool.h"

#include <gtest/gtest.h>

#include "cohort/collective/sole_communicator.h"

namespace cohort::collective {
namespace {

TEST(BufferPool, GivesTheSmallestThatIsLargeEnoughAgain) {
  SoleCommunicator sole;
  BufferPool pool(sole);
  BufferPool::Piece large = pool.take(1000);
  BufferPool::Piece small = pool.take(100);
  const char* const of_large = large.data();
  const char* const of_small = small.data();
  ASSERT_NE(of_large, of_small);
  large = {};
  { const BufferPool::Piece gone = std::move(small); }
  const BufferPool::Piece again = pool.take(90);
  EXPECT_EQ(again.data(), of_small);
  EXPECT_EQ(again.bytes(), 100);
  EXPECT_EQ(pool.take(101).data(), of_large);
  EXPECT_NE(pool.take(2000).data(), of_large);
}

TEST(BufferPool, APieceThatIsInUseIsNotGivenToAnother) {
  SoleCommunicator sole;
  BufferPool pool(sole);
  const BufferPool::Piece first = pool.take(64);
  const BufferPool::Piece second = pool.take(64);
  EXPECT_NE(first.data(), second.data());
}

}  // namespace
}  // namespace cohort::collective
