#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "cohort/data/generator.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 0, 1, ... limit - 1, counting calls.
auto counter(int64_t limit, int64_t* calls = nullptr) {
  return [i = int64_t{0}, limit, calls]() mutable -> std::optional<int64_t> {
    if (calls) ++*calls;
    return i < limit ? std::optional(i++) : std::nullopt;
  };
}

Generator<int64_t> squares(int64_t limit) {
  for (int64_t i = 0; i < limit; ++i) co_yield i* i;
}

// Counts, and can be put anywhere.
struct Resumable {
  int64_t* calls;
  int64_t at = 0;
  std::optional<int64_t> next() {
    ++*calls;
    return at < 100 ? std::optional(at++) : std::nullopt;
  }
  std::string save() const { return std::to_string(at); }
  void restore(std::string_view bytes) { at = std::stoll(std::string(bytes)); }
};

TEST(FromGenerator, CallsAFunctionUntilItHasNoMore) {
  const Dataset dataset = Dataset::from_generator(counter(4));
  EXPECT_THAT(ints(dataset), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ints(dataset), ElementsAre(0, 1, 2, 3));  // each pass has its own copy
  EXPECT_THAT(ints(dataset.repeat(2).batch(3)), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_EQ(dataset.cardinality(), kUnknownCardinality);
  EXPECT_EQ(dataset.element_spec(), StructureSpec(TensorSpec(std::vector<int64_t>{}, int64)));
}

TEST(FromGenerator, RunsACoroutine) {
  const Dataset dataset = Dataset::from_generator([] { return squares(4); });
  EXPECT_THAT(ints(dataset.repeat(2)), ElementsAre(0, 1, 4, 9, 0, 1, 4, 9));
  int64_t limit = 2;
  const Dataset capturing = Dataset::from_generator([limit]() -> Generator<Structure> {
    for (int64_t i = 0; i < limit; ++i) co_yield tuple(i, StringTensor::scalar("x"));
  });
  limit = 0;
  EXPECT_THAT(texts(capturing), ElementsAre("(0, \"x\")", "(1, \"x\")"));
}

TEST(FromGenerator, AFunctionThatThrowsIsCalledAgain) {
  const Dataset dataset = Dataset::from_generator([i = 0]() mutable -> std::optional<int64_t> {
    if (i++ == 2) throw NotFoundError("no such thing");
    return i < 5 ? std::optional<int64_t>(i) : std::nullopt;
  });
  auto iterator = dataset.iterator();
  iterator.get_next();
  iterator.get_next();
  EXPECT_EQ(thrown<NotFoundError>([&] { iterator.next(); }),
            "from_generator: element 2: no such thing");
  EXPECT_THAT(ints(iterator), ElementsAre(4));
}

TEST(FromGenerator, ACoroutineThatThrowsHasEnded) {
  const Dataset dataset = Dataset::from_generator([]() -> Generator<int64_t> {
    co_yield 1;
    throw std::runtime_error("why");
  });
  auto iterator = dataset.iterator();
  iterator.get_next();
  EXPECT_EQ(thrown<UnknownError>([&] { iterator.next(); }), "from_generator: element 1: why");
  EXPECT_FALSE(iterator.next());
}

TEST(FromGenerator, MayNeverEnd) {
  const Dataset endless = Dataset::from_generator([]() -> Generator<int64_t> {
    for (int64_t i = 0;; ++i) co_yield i;
  });
  EXPECT_THAT(ints(endless.skip(5).take(2)), ElementsAre(5, 6));
  auto ahead = endless.prefetch(4).iterator();  // whose thread ends with it
  EXPECT_EQ(ahead.get_next().tensor().item<int64_t>(), 0);
}

TEST(FromGenerator, ResumesByRunningAgain) {
  int64_t calls = 0;
  const Dataset dataset = Dataset::from_generator(counter(100, &calls));
  auto iterator = dataset.iterator();
  for (int i = 0; i < 40; ++i) iterator.get_next();
  auto restored = dataset.iterator();
  calls = 0;
  restored.restore(IteratorState::parse(iterator.state().serialize()));
  EXPECT_EQ(calls, 40);
  EXPECT_EQ(ints(restored), ints(iterator));
  EXPECT_THAT(dataset.explain(), HasSubstr("resumes=by running again"));
}

TEST(FromGenerator, ResumesByItsOwnState) {
  int64_t calls = 0;
  const Dataset dataset = Dataset::from_generator(Resumable{&calls});
  for (int position : {0, 1, 40, 100}) {
    auto iterator = dataset.iterator();
    for (int i = 0; i < position; ++i) iterator.get_next();
    const IteratorState state = iterator.state();
    auto restored = dataset.iterator();
    calls = 0;
    restored.restore(IteratorState::parse(state.serialize()));
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(ints(restored), ints(iterator));
  }
  EXPECT_THAT(dataset.explain(), HasSubstr("resumes=by its own state"));
}

TEST(FromGenerator, AShorterOneThanItsStateIsDataLoss) {
  int64_t limit = 10;
  const Dataset dataset =
      Dataset::from_generator([i = int64_t{0}, &limit]() mutable -> std::optional<int64_t> {
        return i < limit ? std::optional(i++) : std::nullopt;
      });
  auto iterator = dataset.iterator();
  for (int i = 0; i < 8; ++i) iterator.get_next();
  const IteratorState state = iterator.state();
  limit = 5;
  EXPECT_THROW(dataset.iterator().restore(state), DataLossError);
}

TEST(FromGenerator, HoldsElementsToItsSpec) {
  const Dataset dataset = Dataset::from_generator(
      counter(3), {.output_spec = TensorSpec(std::vector<int64_t>{}, float32)});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { texts(dataset); }),
              HasSubstr("element 0 does not fit output_spec"));
  EXPECT_THROW(Dataset::from_generator(counter(0)).element_spec(), FailedPreconditionError);
}

}  // namespace
}  // namespace cohort::data
