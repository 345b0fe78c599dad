#include "cohort/ops/plan/plan_cache.h"

#include <gtest/gtest.h>

#include <thread>

namespace cohort::internal::plan {
namespace {

TEST(PlanCache, KeepsOnePlanForEachShapeAndItsGradients) {
  PlanCache cache({Dense{.units = 2}});
  const int64_t shape[] = {4, 3};
  EXPECT_EQ(cache.find({shape, 0}), nullptr);
  const auto without = cache.compile({shape, 0});
  const auto with = cache.compile({shape, 0b110});
  EXPECT_NE(without, with);
  EXPECT_EQ(cache.find({shape, 0}), without);
  EXPECT_EQ(cache.compile({shape, 0b110}), with);
  EXPECT_FALSE(without->plan->request().records);
  EXPECT_FALSE(with->plan->request().wants_input);
  EXPECT_EQ(with->plan->request().wants_parameters, (std::vector<bool>{true, true}));
  EXPECT_EQ(cache.entries()[0].hits, 1);
}

TEST(PlanCache, ForgetsTheOneThatWasNotUsedForLongest) {
  PlanCache cache({Dense{.units = 2}});
  const auto find = [&](int64_t batch) {
    const int64_t shape[] = {batch, 3};
    return cache.find({shape, 0});
  };
  for (int64_t batch = 1; batch <= 20; ++batch) {
    const int64_t shape[] = {batch, 3};
    cache.compile({shape, 0});
    find(1);
  }
  EXPECT_EQ(cache.entries().size(), 16u);
  EXPECT_NE(find(1), nullptr);
  EXPECT_EQ(find(2), nullptr);
  EXPECT_NE(find(20), nullptr);
}

TEST(PlanCache, RemembersThatThereIsNone) {
  PlanCache cache({Convolution{.size = {3, 3}}});
  const int64_t shape[] = {4, 2, 2, 1};
  EXPECT_EQ(cache.compile({shape, 0})->plan, nullptr);
  EXPECT_NE(cache.find({shape, 0}), nullptr);
}

TEST(PlanCache, ThreadsGetOnePlan) {
  PlanCache cache({Dense{.units = 2}});
  const int64_t shape[] = {4, 3};
  std::shared_ptr<const Compiled> found[4];
  {
    std::vector<std::jthread> threads;
    for (auto& slot : found) threads.emplace_back([&] { slot = cache.compile({shape, 0}); });
  }
  for (const auto& slot : found) EXPECT_EQ(slot, found[0]);
}

}  // namespace
}  // namespace cohort::internal::plan
