// What elements look like, where nobody says: found out by looking at some, and trusted no further.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/test_util.h"
#include "cohort/ops/random.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;

StructureSpec int64_spec(std::vector<int64_t> shape) {
  return StructureSpec(TensorSpec(std::move(shape), int64));
}

Tensor refuse_zero(const Tensor& x) {
  if (x.item<int64_t>() == 0) throw InvalidArgumentError("zero");
  return x;
}

// x -> x values x, as the documentation of padded_batch has it.
Dataset growing(int64_t start, int64_t stop) {
  return Dataset::range(start, stop).map([](const Tensor& x) {
    return at::full({x.item<int64_t>()}, x.item<int64_t>(), at::kLong);
  });
}

TEST(Probe, PassesOverElementsThatFail) {
  const Dataset mapped = Dataset::range(6).map(refuse_zero);
  EXPECT_EQ(mapped.element_spec(), int64_spec({}));
  EXPECT_EQ(mapped.ignore_errors().batch(2).element_spec(), int64_spec({kUnknownDim}));
  const auto run = [](int64_t x) { return Dataset::range(x).map(refuse_zero); };
  EXPECT_EQ(Dataset::range(4).flat_map(run).element_spec(), int64_spec({}));
}

TEST(Probe, GivesTheFirstErrorWhereAllFail) {
  const Dataset failing = Dataset::range(1000).map([](const Tensor& x) -> Tensor {
    throw InvalidArgumentError("no " + std::to_string(x.item<int64_t>()));
  });
  EXPECT_EQ(thrown<InvalidArgumentError>([&] { failing.element_spec(); }), "map: element 0: no 0");
}

TEST(Probe, NodesSayWhetherTheyDoIt) {
  const auto guesses = [](const Dataset& dataset) { return dataset.node()->guesses_spec(); };
  const Dataset range = Dataset::range(4);
  EXPECT_FALSE(guesses(range.batch(2).shuffle(2)));
  EXPECT_FALSE(guesses(range.map([](int64_t x) { return x; })));
  EXPECT_FALSE(guesses(range.map(refuse_zero, {.output_spec = int64_spec({})})));
  EXPECT_TRUE(guesses(range.map(refuse_zero).batch(2)));
  EXPECT_TRUE(guesses(range.flat_map([](int64_t x) { return Dataset::range(x); })));
  EXPECT_TRUE(guesses(Dataset::zip({range, range.map(refuse_zero)})));
  const auto nothing = []() -> std::optional<Tensor> { return std::nullopt; };
  EXPECT_TRUE(guesses(Dataset::from_generator(nothing)));
  EXPECT_FALSE(guesses(Dataset::from_generator(nothing, {.output_spec = int64_spec({})})));
}

TEST(Probe, SizesOfOneElementSayNothingOfOthers) {
  const Dataset batches = growing(1, 5).padded_batch(2);
  EXPECT_EQ(batches.element_spec(), int64_spec({kUnknownDim, kUnknownDim}));
  EXPECT_EQ(growing(1, 5).unbatch().cardinality(), kUnknownCardinality);
  const Dataset generated = Dataset::from_generator([left = 2]() mutable -> std::optional<Tensor> {
    return left-- > 0 ? std::optional(at::full({4}, 1, at::kLong)) : std::nullopt;
  });
  EXPECT_EQ(generated.element_spec(), int64_spec({kUnknownDim}));
}

// Shuffles without a seed in the datasets of a function, which is called again for the same
// element: after a restore, and to find out what elements look like.
TEST(Probe, FunctionsOfDatasetsGiveTheSameSeedsAgain) {
  const auto shuffled = [](int64_t x) { return Dataset::range(10 * x, 10 * x + 8).shuffle(8); };
  for (const Dataset& dataset : {Dataset::range(4).flat_map(shuffled),
                                 Dataset::range(4).interleave(shuffled, {.cycle_length = 2})}) {
    for (int position = 0; position <= 32; ++position) {
      auto iterator = dataset.iterator();
      for (int i = 0; i < position; ++i) iterator.get_next();
      auto restored = dataset.iterator();
      restored.restore(IteratorState::parse(iterator.state().serialize()));
      EXPECT_EQ(ints(restored), ints(iterator)) << position;
    }
  }
  const auto order = [&](bool look) {
    random::set_seed(5);
    const Dataset dataset = Dataset::range(4).flat_map(shuffled);
    if (look) dataset.element_spec();
    return ints(dataset);
  };
  EXPECT_EQ(order(true), order(false));
}

}  // namespace
}  // namespace cohort::data
