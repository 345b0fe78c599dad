// A DeadlineExceededError of a user's function is an error of its element like any other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "cohort/data/iteration/input_deadline.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_device.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// It was not the device that did not answer: the element is consumed, as by any other error.
TEST(DeadlineOfAFunction, IsAnErrorOfItsElement) {
  const auto fail = [](int64_t x) {
    if (x == 4) throw DeadlineExceededError("no answer");
    return x;
  };
  const auto passes = [=](int64_t x) { return fail(x) < 100; };
  const Dataset range = Dataset::range(8), blocks = in_blocks(range), single = sequential(range);
  const auto rest = ElementsAre("0", "1", "2", "3", HasSubstr("no answer"), "5", "6", "7");
  for (const Dataset& dataset :
       {range.map(fail), blocks.map(fail), single.map(fail), single.map(fail).take(8),
        single.map(fail).cache(), single.map(fail).prefetch(2), blocks.map(fail).filter(passes),
        single.map(fail, {.num_parallel_calls = 3}), range.filter(passes), blocks.filter(passes),
        single.filter(passes), single.take_while(passes), single.map(fail).take_while(passes),
        single.scan(Structure(0), [=](int64_t sum, int64_t x) { return std::pair(sum, fail(x)); }),
        single.flat_map([=](int64_t x) { return Dataset::range(fail(x), x + 1); }),
        Dataset::range(1).flat_map([=](int64_t) { return single.map(fail); }),
        Dataset::range(1).interleave([=](int64_t) { return single.map(fail); },
                                     {.block_length = 3, .num_parallel_calls = 2}),
        Dataset::from_generator([=, i = int64_t{0}]() mutable -> std::optional<int64_t> {
          return i < 8 ? std::optional(fail(i++)) : std::nullopt;
        })}) {
    EXPECT_THAT(outcomes(dataset), rest) << dataset.explain();
    EXPECT_THAT(outcomes(dataset.skip(6)), ElementsAre("6", "7")) << dataset.explain();
    EXPECT_THAT(outcomes(dataset.batch(3)),
                ElementsAre("[0, 1, 2]", HasSubstr("no answer"), "[6, 7]"))
        << dataset.explain();
    EXPECT_THAT(ints(dataset.ignore_errors()), ElementsAre(0, 1, 2, 3, 5, 6, 7));
    EXPECT_THAT(outcomes(dataset.shuffle(3).ignore_errors()),
                UnorderedElementsAre("0", "1", "2", "3", "5", "6", "7"));
  }
}

// The next element fails with a DeadlineExceededError, and does not come again.
void expect_consuming_deadline(DatasetIterator& iterator) {
  try {
    iterator.next();
    FAIL() << "no deadline was missed";
  } catch (const internal::InputDeadlineExceeded& error) {
    FAIL() << "the element would come again: " << error.what();
  } catch (const DeadlineExceededError&) {
  }
}

// Nor that of this pipeline, where a function reads another one.
TEST(DeadlineOfAFunction, IsNotThatOfAPipelineWithin) {
  std::atomic<int> timeouts = 1;
  const Dataset within = slow_device(1, 0, &timeouts);
  const Dataset dataset = Dataset::range(3).map(
      [&](int64_t x) { return x + within.iterator().get_next().tensor().item<int64_t>(); });
  auto iterator = dataset.iterator();
  expect_consuming_deadline(iterator);
  EXPECT_THAT(ints(iterator), ElementsAre(1, 2));
}

// A generator may read a pipeline, which resumes by itself.
TEST(DeadlineOfAFunction, IsAnErrorOfAnElementWhereAGeneratorReadsAPipeline) {
  std::atomic<int> timeouts = 1;
  const Dataset device = slow_device(10, 6, &timeouts);
  auto iterator =
      Dataset::from_generator([within = std::make_shared<DatasetIterator>(device.iterator())] {
        return within->next();
      }).iterator();
  for (int i = 0; i < 6; ++i) iterator.get_next();
  EXPECT_THAT(thrown<DeadlineExceededError>([&] { iterator.next(); }),
              HasSubstr("from_generator: element 6: the device does not answer"));
  EXPECT_THAT(ints(iterator), ElementsAre(6, 7, 8, 9));
}

// A coroutine that has thrown is over.
TEST(DeadlineOfAFunction, EndsACoroutine) {
  std::atomic<int> timeouts = 1;
  const Dataset within = slow_device(6, 3, &timeouts);
  const Dataset dataset = Dataset::from_generator([within]() -> Generator<int64_t> {
                            for (const Structure& element : within) {
                              co_yield element.tensor().item<int64_t>();
                            }
                          }).cache();
  auto iterator = dataset.iterator();
  for (int i = 0; i < 3; ++i) iterator.next();
  expect_consuming_deadline(iterator);
  EXPECT_FALSE(iterator.next());
  EXPECT_THAT(ints(dataset), ElementsAre(0, 1, 2, 3, 4, 5)) << "half a pass was cached";
}

// Nor while a restore calls it again: the state stays good.
TEST(DeadlineOfAFunction, DoesNotSpoilTheRestoreOfACoroutine) {
  std::atomic<int> timeouts = 0;
  const Dataset within = slow_device(6, 2, &timeouts);
  const Dataset dataset = Dataset::from_generator([within]() -> Generator<int64_t> {
    for (const Structure& element : within) co_yield element.tensor().item<int64_t>();
  });
  auto iterator = dataset.iterator();
  for (int i = 0; i < 3; ++i) iterator.next();
  const IteratorState state = iterator.state();
  timeouts = 1;
  auto restored = dataset.iterator();
  EXPECT_THROW(restored.restore(state), DeadlineExceededError);
  restored.restore(state);
  EXPECT_THAT(ints(restored), ElementsAre(3, 4, 5));
}

}  // namespace
}  // namespace cohort::data
