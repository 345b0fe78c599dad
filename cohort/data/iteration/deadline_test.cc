// A device that does not answer in time: each call waits once, and no element is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cohort/data/iteration/input_deadline.h"
#include "cohort/data/iteration/testing_deadline.h"
#include "cohort/data/nodes/shard.h"
#include "cohort/data/sharding/split_batches.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_device.h"

namespace cohort::data {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAreArray;
using Stage = std::function<Dataset(const Dataset&)>;

constexpr int kForEver = 1000;

int64_t same(int64_t x) { return x; }
int64_t joined(int64_t x, int64_t y) { return 100 * x + y; }
bool is_odd(int64_t x) { return x % 2 == 1; }
Tensor twice_each(const Tensor& x) { return 2 * x; }
int64_t fail_at_four(int64_t x) {
  if (x == 4) throw NotFoundError("no such thing");
  return x;
}
bool passes(int64_t x) { return fail_at_four(x) >= 0; }

class Deadline : public SlowDeviceTest {
 protected:
  // Reads until a timeout; how many there were then.
  int waits(const Dataset& dataset) {
    timeouts_ = kForEver;
    EXPECT_THROW(ints(dataset), DeadlineExceededError);
    return kForEver - timeouts_;
  }
  // Wherever the device misses a deadline, the same comes of each stage.
  void expect_nothing_lost(const std::vector<Stage>& stages) {
    for (int64_t slow = 0; slow <= 10; ++slow) {
      const Dataset device = slow_device(10, slow, &timeouts_);
      for (const Stage& stage : stages) {
        for (const Dataset& input : {device, in_blocks(device)}) {
          timeouts_ = 0;
          const Dataset dataset = stage(input);
          const std::vector<std::string> expected = outcomes_across(dataset, After::kNextCall);
          for (const After after : {After::kNextCall, After::kRestart}) {
            timeouts_ = 1;
            EXPECT_EQ(outcomes_across(stage(input), after), expected)
                << "slow at " << slow << ", restart: " << (after == After::kRestart) << ": "
                << dataset.explain();
          }
        }
      }
    }
  }
};

TEST_F(Deadline, IsWaitedForOnce) {
  const auto keep = [](int64_t) { return true; };
  EXPECT_EQ(waits(device_), 1);
  EXPECT_EQ(waits(device_.batch(9)), 1);
  EXPECT_EQ(waits(device_.skip(9)), 1);
  EXPECT_EQ(waits(device_.batch(2).unbatch().skip(9)), 1);
  EXPECT_EQ(waits(in_blocks(device_).filter(keep)), 1);
  EXPECT_EQ(waits(in_blocks(device_).filter(keep).batch(9)), 1);
  EXPECT_EQ(waits(device_.map(fail_at_four).batch(9)), 1);
  EXPECT_EQ(waits(device_.cache().batch(9)), 1);
  EXPECT_EQ(waits(device_.shuffle(3).batch(9)), 1);
  EXPECT_EQ(waits(device_.ignore_errors()), 1);
  EXPECT_EQ(waits(device_.prefetch(4)), 1);
  for (bool deterministic : {true, false}) {
    EXPECT_EQ(waits(device_.map(same, {.num_parallel_calls = 4, .deterministic = deterministic})),
              1);
  }
  EXPECT_EQ(waits(Dataset::range(1).interleave(
                [this](const Structure&) { return device_; },
                {.cycle_length = 1, .block_length = 9, .num_parallel_calls = 1})),
            1);
}

TEST_F(Deadline, LosesNoElement) {
  expect_nothing_lost({
      [](const Dataset& d) { return d; },
      [](const Dataset& d) { return d.map(twice_each, {.vectorized = true}); },
      [](const Dataset& d) { return d.take_while([](int64_t x) { return x < 8; }); },
      [](const Dataset& d) { return d.cache(); },
      [](const Dataset& d) { return d.assert_cardinality(10); },
      [](const Dataset& d) {
        return d.scan(Structure(0), [](int64_t sum, int64_t x) { return std::pair(sum + x, sum); });
      },
      [](const Dataset& d) { return d.repeat(2); },
      [](const Dataset& d) { return d.cache().repeat(2); },
      [](const Dataset& d) { return d.concatenate(Dataset::range(3)); },
      [](const Dataset& d) { return Dataset::range(3).concatenate(d); },
      [](const Dataset& d) { return d.concatenate(d); },
      [](const Dataset& d) { return d.batch(4); },
      [](const Dataset& d) { return d.batch(4, {.drop_remainder = true}); },
      [](const Dataset& d) { return d.padded_batch(3); },
      [](const Dataset& d) { return d.batch(4).unbatch(); },
      [](const Dataset& d) {
        return d.batch(4).rebatch({1, 2, 0});
      },
      [](const Dataset& d) { return d.batch(3).rebatch(4).unbatch().batch(6); },
      [](const Dataset& d) { return d.prefetch(1); },
      [](const Dataset& d) { return d.prefetch(4).batch(3).prefetch(AUTOTUNE); },
      [](const Dataset& d) { return d.shuffle(4, {.seed = 1}); },
      [](const Dataset& d) { return d.shuffle(20, {.seed = 1}).repeat(2); },
      [](const Dataset& d) { return d.map(twice_each, {.num_parallel_calls = 3}); },
      [](const Dataset& d) { return d.map(twice_each, {.num_parallel_calls = 3}).batch(4); },
      [](const Dataset& d) { return d.filter(is_odd).batch(2); },
      [](const Dataset& d) { return d.skip(4); },
      [](const Dataset& d) { return d.skip(2).batch(3).skip(1); },
      [](const Dataset& d) { return d.take(8).skip(3).repeat(2); },
      [](const Dataset& d) { return d.map(same).skip(4).enumerate().map(joined); },
      [](const Dataset& d) { return d.ignore_errors(); },
  });
}

TEST_F(Deadline, LosesNoElementWhereInputsAreDividedOrJoined) {
  expect_nothing_lost({
      [](const Dataset& d) { return d.shard(2, 0); },
      [](const Dataset& d) { return d.shard(3, 1); },
      [](const Dataset& d) { return d.shard(4, 3).repeat(2); },
      [](const Dataset& d) { return d.shard(2, 1).shard(2, 1); },
      [](const Dataset& d) { return d.batch(3).shard(2, 0); },
      [](const Dataset& d) { return d.batch(2).shard(2, 1); },
      [](const Dataset& d) { return d.padded_batch(2).shard(2, 1); },
      [](const Dataset& d) { return d.batch(4).rebatch(2).shard(2, 1); },
      [](const Dataset& d) { return split_batches(d.batch(4), 2); },
      [](const Dataset& d) { return split_batches(d.batch(4), 2).shard(2, 1); },
      [](const Dataset& d) { return split_batches(d.batch(3), 3).shard(3, 0); },
      [](const Dataset& d) { return split_batches(d.batch(4), 2).skip(1); },
      [](const Dataset& d) { return d.shard(2, 1).batch(3); },
      [](const Dataset& d) {
        return Dataset::zip({Dataset::range(9), d}).shard(2, 1).map(joined);
      },
      [](const Dataset& d) {
        return Dataset::zip({sequential(Dataset::range(9)), d}).skip(3).map(joined);
      },
      [](const Dataset& d) { return d.flat_map([](int64_t x) { return Dataset::range(x); }); },
      [](const Dataset& d) {
        return d.interleave([](int64_t x) { return Dataset::range(x, x + 3); },
                            {.cycle_length = 2, .block_length = 2});
      },
      [](const Dataset& d) {
        return d.interleave([](int64_t x) { return Dataset::range(x, x + 3); },
                            {.cycle_length = 3, .num_parallel_calls = 2});
      },
      [](const Dataset& d) {
        return Dataset::range(3).interleave([d](int64_t) { return d; },
                                            {.cycle_length = 2, .block_length = 2});
      },
      [](const Dataset& d) {
        return Dataset::range(3).interleave(
            [d](int64_t) { return d; },
            {.cycle_length = 3, .block_length = 2, .num_parallel_calls = 1});
      },
  });
}

// What fails with an element fails whenever the device answers: counts and pairs stay right.
TEST_F(Deadline, ChangesNoError) {
  const auto numbers = [] { return sequential(Dataset::range(20)); };
  expect_nothing_lost({
      [](const Dataset& d) { return d.map(fail_at_four).batch(3); },
      [](const Dataset& d) { return d.map(fail_at_four).padded_batch(3); },
      [](const Dataset& d) { return d.map(fail_at_four).batch(3).skip(1); },
      [](const Dataset& d) { return d.map(fail_at_four, {.num_parallel_calls = 3}).batch(3); },
      [](const Dataset& d) { return d.map(fail_at_four).batch(3).prefetch(2); },
      [](const Dataset& d) { return d.map(fail_at_four).shuffle(3, {.seed = 1}); },
      [](const Dataset& d) {
        return Dataset::zip({Dataset::range(9), d.filter(passes)}).batch(4);
      },
      [=](const Dataset& d) {
        return Dataset::zip({numbers().batch(3), d.map(fail_at_four).batch(3)});
      },
      [=](const Dataset& d) {
        return Dataset::zip({numbers(), d.map(fail_at_four)}).map(joined).batch(3);
      },
      [=](const Dataset& d) {
        return Dataset::zip({numbers().map(fail_at_four), d}).shard(3, 1);
      },
      [](const Dataset& d) { return d.filter(passes).enumerate().map(joined).batch(4); },
      [](const Dataset& d) { return d.filter(passes).take(8).batch(3); },
      [](const Dataset& d) {
        return d.map(fail_at_four).map(twice_each, {.vectorized = true}).batch(3);
      },
      [](const Dataset& d) {
        return d.map(fail_at_four)
            .map(twice_each, {.num_parallel_calls = 1, .vectorized = true})
            .batch(3);
      },
      [](const Dataset& d) {
        return d.flat_map([](int64_t x) { return Dataset::range(fail_at_four(x), x + 2); });
      },
  });
}

// Also one whose shard must be sure that there is an element for each.
TEST_F(Deadline, ShardsThatCountElementsLoseNone) {
  using internal::ShardRequirement;
  std::vector<Stage> stages;
  for (const auto requirement :
       {ShardRequirement::kElementForEach, ShardRequirement::kFileForEach}) {
    for (int64_t index = 0; index < 3; ++index) {
      stages.push_back([=](const Dataset& d) {
        return Dataset(internal::make_shard(d.node(), 3, index, requirement));
      });
      stages.push_back([=](const Dataset& d) {
        return Dataset(internal::make_shard(d.take(2).node(), 3, index, requirement));
      });
    }
  }
  expect_nothing_lost(stages);
}

// What another iterator would give in another order: each element comes once all the same.
TEST_F(Deadline, LosesNoElementWhereOrderIsNotKept) {
  const auto expected = UnorderedElementsAreArray(texts(Dataset::range(10)));
  const std::vector<Stage> stages = {
      [](const Dataset& d) {
        return d.map(same, {.num_parallel_calls = 4, .deterministic = false});
      },
      [](const Dataset& d) {
        return d.batch(1).unbatch().map(same, {.num_parallel_calls = 2, .deterministic = false});
      },
      [](const Dataset& d) {
        return Dataset::range(1).flat_map([d](int64_t) {
          return d.map(same, {.num_parallel_calls = 3, .deterministic = false});
        });
      },
      [](const Dataset& d) {
        return d.interleave([](int64_t x) { return Dataset::range(x, x + 1); },
                            {.cycle_length = 3, .num_parallel_calls = 3, .deterministic = false});
      },
  };
  for (int64_t slow = 0; slow <= 10; ++slow) {
    for (const Stage& stage : stages) {
      for (const After after : {After::kNextCall, After::kRestart}) {
        timeouts_ = 2;
        EXPECT_THAT(outcomes_across(stage(slow_device(10, slow, &timeouts_)), after), expected)
            << slow;
      }
    }
  }
}

// What is said to have failed is what did.
TEST_F(Deadline, MessagesCountElements) {
  const auto fail = [](int64_t x) {
    if (x == 8) throw NotFoundError("no such thing");
    return true;
  };
  const auto fail_next = [=](int64_t sum, int64_t x) { return std::pair(sum, fail(x)); };
  for (const Dataset& dataset :
       {device_.map(fail), in_blocks(device_).map(fail),
        device_.map(fail, {.num_parallel_calls = 3}), device_.filter(fail),
        in_blocks(device_).filter(fail), device_.take_while(fail),
        device_.scan(Structure(0), fail_next),
        device_.flat_map([=](int64_t x) { return Dataset::range(fail(x)); })}) {
    timeouts_ = 1;
    auto iterator = dataset.iterator();
    EXPECT_THROW(texts(iterator), internal::InputDeadlineExceeded);
    EXPECT_THAT(thrown<NotFoundError>([&] { texts(iterator); }), HasSubstr("element 8"))
        << dataset.explain();
  }
}

// A prefetch reads on only after the next call.
TEST_F(Deadline, IsReportedOnceByPrefetch) {
  timeouts_ = 2;
  auto iterator = device_.prefetch(4).iterator();
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), i);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(iterator.next(), DeadlineExceededError);
  EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 6);
}

}  // namespace
}  // namespace cohort::data
