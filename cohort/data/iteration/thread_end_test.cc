// Functions on elements that end their thread, by pthread_exit: the reader gets a typed error, and
// the elements after it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <latch>
#include <memory>
#include <mutex>
#include <thread>

#include "cohort/data/generator.h"
#include "cohort/data/iteration/work_group.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const auto kEnded = AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("pthread_exit"));

// Ends every thread that calls it but the one that made it, which waits until another one has come.
class EndsOthers {
 public:
  int64_t operator()(int64_t x) const {
    if (std::this_thread::get_id() == state_->maker) {
      state_->come.wait();
      return x;
    }
    std::call_once(state_->once, [this] { state_->come.count_down(); });
    pthread_exit(nullptr);
  }

 private:
  struct State {
    const std::thread::id maker = std::this_thread::get_id();
    std::once_flag once;
    std::latch come{1};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// All of the pool's threads are there.
void expect_full_pool() {
  internal::WorkGroup group;
  std::latch all(internal::num_pipeline_threads() + 1);
  for (int i = 0; i < internal::num_pipeline_threads(); ++i)
    group.add([&] { all.arrive_and_wait(); });
  all.arrive_and_wait();
}

TEST(ThreadEnd, OfAPoolsThreadIsAnErrorOfItsElement) {
  const auto found = outcomes(Dataset::range(8).map(EndsOthers(), {.num_parallel_calls = 4}));
  EXPECT_EQ(found.size(), 8u);
  EXPECT_THAT(found, Contains(AllOf(kEnded, HasSubstr("function of map, on element "))));
  expect_full_pool();
}

TEST(ThreadEnd, InTheDatasetsOfAnInterleave) {
  std::vector<std::string> found;
  const auto ends = [reader = std::this_thread::get_id()](int64_t x) {
    if (std::this_thread::get_id() != reader) pthread_exit(nullptr);
    return x;
  };
  do {  // until the pool was quicker than the reader
    found = outcomes(Dataset::range(2).interleave(
        [=](int64_t) { return Dataset::range(3).map(ends); },
        {.cycle_length = 2, .block_length = 2, .num_parallel_calls = 2}));
    ASSERT_EQ(found.size(), 6u);
  } while (!::testing::Matches(Contains(kEnded))(found));
  expect_full_pool();
}

int64_t ends_at_one(int64_t x) {
  if (x == 1) pthread_exit(nullptr);
  return x;
}

TEST(ThreadEnd, APrefetchGoesOnWithANewThread) {
  EXPECT_THAT(outcomes(Dataset::range(4).map(ends_at_one).prefetch(2)),
              ElementsAre("0", kEnded, "2", "3"));
  EXPECT_THAT(
      outcomes(sequential(Dataset::range(4)).map(ends_at_one).prefetch(2).prefetch(AUTOTUNE)),
      ElementsAre("0", kEnded, "2", "3"));
  // A predicate is asked about many rows at once: the error comes first, and again in its place.
  EXPECT_THAT(
      outcomes(Dataset::range(4).filter([](int64_t x) { return ends_at_one(x) >= 0; }).prefetch(2)),
      ElementsAre(kEnded, "0", AllOf(kEnded, HasSubstr("filter: element 1")), "2", "3"));
}

TEST(ThreadEnd, AGeneratorEndsWithIt) {
  const Dataset dataset = Dataset::from_generator([]() -> Generator<int64_t> {
    co_yield 0;
    co_yield ends_at_one(1);
  });
  EXPECT_THAT(outcomes(dataset.prefetch(1)), ElementsAre("0", kEnded));
}

TEST(ThreadEnd, TheReadersOwnThreadEnds) {
  for (const Dataset& dataset :
       {Dataset::range(4).map(ends_at_one),
        Dataset::range(4).filter([](int64_t x) { return ends_at_one(x) == 0; }),
        Dataset::range(4).batch(2).unbatch().map(ends_at_one)}) {
    std::thread([&] {
      outcomes(dataset);
      ADD_FAILURE() << "read to its end";
    }).join();
  }
}

}  // namespace
}  // namespace cohort::data
