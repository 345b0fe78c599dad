// A device that does not answer in time: each call waits once, and no element is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cohort/data/generator.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;

constexpr int kForEver = 1000;

// Gives 0 to 9; element 6 only after so many timeouts.
struct SlowDevice {
  int* timeouts;
  int64_t position = 0;

  std::optional<int64_t> next() {
    if (position == 6 && *timeouts > 0) {
      --*timeouts;
      throw DeadlineExceededError("the device does not answer");
    }
    return position < 10 ? std::optional(position++) : std::nullopt;
  }
  std::string save() const { return std::to_string(position); }
  void restore(std::string_view bytes) { position = std::stoll(std::string(bytes)); }
};

class Deadline : public testing::Test {
 protected:
  // Reads until a timeout; how many there were then.
  int waits(const Dataset& dataset) {
    timeouts_ = kForEver;
    EXPECT_THROW(ints(dataset), DeadlineExceededError);
    return kForEver - timeouts_;
  }
  // What comes in all where one call times out.
  std::vector<int64_t> all_after_one(const Dataset& dataset) {
    timeouts_ = 1;
    auto iterator = dataset.iterator();
    std::vector<int64_t> all;
    for (int errors = 0; errors < 2;) {
      try {
        const auto element = iterator.next();
        if (!element) break;
        all.push_back(element->tensor().item<int64_t>());
      } catch (const DeadlineExceededError&) {
        ++errors;
      }
    }
    return all;
  }

  int timeouts_ = 0;
  const Dataset device_ = Dataset::from_generator(SlowDevice{&timeouts_});
};

TEST_F(Deadline, IsWaitedForOnce) {
  const auto keep = [](int64_t) { return true; };
  const auto same = [](const Tensor& x) { return x; };
  EXPECT_EQ(waits(device_), 1);
  EXPECT_EQ(waits(device_.batch(9)), 1);
  EXPECT_EQ(waits(device_.skip(9)), 1);
  EXPECT_EQ(waits(device_.batch(2).unbatch().skip(9)), 1);
  EXPECT_EQ(waits(in_blocks(device_).filter(keep)), 1);
  EXPECT_EQ(waits(in_blocks(device_).filter(keep).batch(9)), 1);
  EXPECT_EQ(waits(device_.cache().batch(9)), 1);
  EXPECT_EQ(waits(device_.shuffle(3).batch(9)), 1);
  EXPECT_EQ(waits(device_.ignore_errors()), 1);
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
  const auto same = [](const Tensor& x) { return x; };
  const auto in_order = ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
  EXPECT_THAT(all_after_one(in_blocks(device_).filter([](int64_t) { return true; })), in_order);
  EXPECT_THAT(all_after_one(device_.cache()), in_order);
  EXPECT_THAT(all_after_one(device_.map(same, {.num_parallel_calls = 4})), in_order);
  EXPECT_THAT(all_after_one(device_.map(same, {.num_parallel_calls = 4, .deterministic = false})),
              testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

// Positions that count elements do not count timeouts.
TEST_F(Deadline, StatesStayRight) {
  const auto draw = [](random::Generator& random, int64_t x) {
    return Structure(static_cast<int64_t>(random.next_u64() % 1000) * 100 + x);
  };
  for (const Dataset& dataset : {device_.cache(), device_.shuffle(3, {.seed = 1}),
                                 device_.map(draw, {.num_parallel_calls = 1, .seed = 1}),
                                 device_.map(draw, {.num_parallel_calls = 3, .seed = 1})}) {
    timeouts_ = 0;
    const std::vector<int64_t> expected = ints(dataset.take(9));
    timeouts_ = 1;
    auto iterator = dataset.iterator();
    std::vector<int64_t> found;
    while (found.size() < 7) {
      try {
        found.push_back(iterator.get_next().tensor().item<int64_t>());
      } catch (const DeadlineExceededError&) {
      }
    }
    auto restored = dataset.iterator();
    restored.restore(iterator.state());
    while (found.size() < 9) found.push_back(restored.get_next().tensor().item<int64_t>());
    EXPECT_EQ(found, expected) << dataset.explain();
  }
}

}  // namespace
}  // namespace cohort::data
