#include "cohort/core/threads/lazy.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace cohort::internal {
namespace {

TEST(LazyTest, IsMadeOnceForAllThreads) {
  const Lazy<int> lazy;
  EXPECT_EQ(lazy.get_if(), nullptr);
  std::atomic<int> made = 0;
  std::vector<int> seen(4);
  std::vector<std::thread> threads;
  for (int& one : seen) {
    threads.emplace_back([&] { one = lazy.get([&] { return 7 + made++; }); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(seen, std::vector<int>(4, 7));
  EXPECT_EQ(*lazy.get_if(), 7);
}

TEST(LazyTest, WhatIsKnownFromTheStartIsNotMade) {
  const Lazy<std::string> lazy("given");
  EXPECT_EQ(lazy.get([]() -> std::string { throw std::logic_error("made"); }), "given");
}

TEST(LazyTest, AFailureCanBeTriedAgain) {
  const Lazy<int> lazy;
  EXPECT_THROW(lazy.get([]() -> int { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(lazy.get_if(), nullptr);
  EXPECT_EQ(lazy.get([] { return 2; }), 2);
}

}  // namespace
}  // namespace cohort::internal
