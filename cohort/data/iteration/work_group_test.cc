#include "cohort/data/iteration/work_group.h"

#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <latch>
#include <optional>

#include "cohort/data/test_util.h"

namespace cohort::internal {
namespace {

// Keeps all threads of the pool busy, so that nobody begins what is added meanwhile.
class BusyPool : public testing::Test {
 protected:
  BusyPool() {
    for (int i = 0; i < num_pipeline_threads(); ++i) {
      group_.add([this] {
        busy_.count_down();
        end_.wait();
      });
    }
    busy_.wait();
  }
  ~BusyPool() override { end_.count_down(); }

 private:
  std::latch busy_{num_pipeline_threads()};
  std::latch end_{1};
  WorkGroup group_;  // last: it waits
};

// What keeps the task that works on it.
struct Unit {
  WorkGroup::TaskPtr task;
};

TEST_F(BusyPool, DroppedWorkIsDestroyed) {
  WorkGroup group;
  auto dropped = std::make_shared<Unit>();
  dropped->task = group.add([dropped] {});
  auto cancelled = std::make_shared<Unit>();
  cancelled->task = group.add([cancelled] {});
  group.drop(dropped->task);
  group.cancel();
  const std::weak_ptr<Unit> first = dropped, second = cancelled;
  dropped = cancelled = nullptr;
  EXPECT_TRUE(first.expired());
  EXPECT_TRUE(second.expired());
}

TEST_F(BusyPool, AnIteratorTakesWhatItReadAheadWithIt) {
  std::vector<std::weak_ptr<int64_t>> alive;
  const auto generate = [&alive, i = 0]() mutable -> std::optional<Tensor> {
    if (i++ == 20) return std::nullopt;
    const auto memory = std::make_shared<int64_t>(i);
    alive.push_back(memory);
    return at::from_blob(
        memory.get(), {}, [memory](void*) {}, at::kLong);
  };
  {
    auto iterator = data::Dataset::from_generator(generate)
                        .map([](const Tensor& x) { return x + 1; }, {.num_parallel_calls = 8})
                        .iterator();
    EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 2);
    EXPECT_FALSE(alive.back().expired());
  }
  EXPECT_GE(alive.size(), 8u);
  for (const auto& memory : alive) EXPECT_TRUE(memory.expired());
}

}  // namespace
}  // namespace cohort::internal
