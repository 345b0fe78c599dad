#include "cohort/collective/buffer_pool.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

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

TEST(BufferPool, WhatOthersMayReadComesBackAfterACallOnly) {
  SoleCommunicator sole;
  BufferPool pool(sole);
  BufferPool::Piece read_by_others = pool.take(100);
  const char* const data = read_by_others.data();
  pool.set_aside(std::move(read_by_others));
  EXPECT_NE(pool.take(100).data(), data);
  {
    const std::vector<BufferPool::Piece> during_the_call = pool.take_set_aside();
    ASSERT_EQ(during_the_call.size(), 1U);
    EXPECT_NE(pool.take(100).data(), data);
    EXPECT_TRUE(pool.take_set_aside().empty());
  }
  const BufferPool::Piece one = pool.take(100), other = pool.take(100);
  EXPECT_TRUE(one.data() == data || other.data() == data);
  pool.set_aside({});  // nothing
  EXPECT_TRUE(pool.take_set_aside().empty());
}

}  // namespace
}  // namespace cohort::collective
