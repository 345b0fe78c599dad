#include "cohort/ops/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/profiler/tracing.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random_fill.h"

namespace cohort::random {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::vector<DType> kFloatDtypes = {float32, float64, DType::Half, DType::BFloat16};

TEST(GeneratorTest, UniformFillsTheShapeWithinTheBounds) {
  const RandomGenerator generator = RandomGenerator::from_seed(1);
  for (DType dtype : kFloatDtypes) {
    const Tensor x = generator.uniform({100, 50}, {.minval = -2, .maxval = 3, .dtype = dtype});
    EXPECT_THAT(x.sizes().vec(), ElementsAre(100, 50));
    EXPECT_EQ(x.scalar_type(), dtype);
    const Tensor wide = x.to(float64);
    EXPECT_GE(wide.min().item<double>(), -2);
    EXPECT_LT(wide.max().item<double>(), 3);
    EXPECT_LT(wide.min().item<double>(), -1.95);
    EXPECT_GT(wide.max().item<double>(), 2.95);
    EXPECT_NEAR(wide.mean().item<double>(), 0.5, 0.1);
    EXPECT_NEAR(wide.var().item<double>(), 25.0 / 12, 0.1);
  }
}

TEST(GeneratorTest, UniformExcludesMaxvalInNarrowDtypesToo) {
  for (DType dtype : kFloatDtypes) {
    const Tensor x = RandomGenerator::from_seed(1).uniform({20'000}, {.dtype = dtype}).to(float64);
    EXPECT_LT(x.max().item<double>(), 1) << internal::dtype_name(dtype);
    EXPECT_GE(x.min().item<double>(), 0) << internal::dtype_name(dtype);
  }
}

TEST(GeneratorTest, UniformIntegersReachEveryValueAndNoOther) {
  for (DType dtype : {uint8, DType::Char, DType::Short, int32, int64}) {
    const Tensor x =
        RandomGenerator::from_seed(1).uniform({2000}, {.minval = 3, .maxval = 7, .dtype = dtype});
    EXPECT_EQ(x.scalar_type(), dtype);
    for (int value = 3; value < 7; ++value) {
      EXPECT_NEAR((x == value).sum().item<double>(), 500, 120) << value;
    }
    EXPECT_EQ((x >= 3).logical_and(x < 7).sum().item<int64_t>(), 2000);
  }
}

TEST(GeneratorTest, UniformIntegersCoverTheWholeRangeOfTheirDtype) {
  const RandomGenerator generator = RandomGenerator::from_seed(1);
  const Tensor bytes =
      generator.uniform({5000}, {.minval = -128, .maxval = 128, .dtype = DType::Char});
  EXPECT_EQ(bytes.min().item<int>(), -128);
  EXPECT_EQ(bytes.max().item<int>(), 127);
  const Tensor longs =
      generator.uniform({100}, {.minval = -0x1p63, .maxval = 0x1p63, .dtype = int64});
  EXPECT_LT(longs.min().item<int64_t>(), std::numeric_limits<int64_t>::min() / 2);
  EXPECT_GT(longs.max().item<int64_t>(), std::numeric_limits<int64_t>::max() / 2);
}

TEST(GeneratorTest, NormalHasItsMeanAndDeviation) {
  for (DType dtype : kFloatDtypes) {
    const Tensor x =
        RandomGenerator::from_seed(1).normal({10'001}, {.mean = 2, .stddev = 0.5, .dtype = dtype});
    EXPECT_EQ(x.scalar_type(), dtype);
    const Tensor wide = x.to(float64);
    EXPECT_NEAR(wide.mean().item<double>(), 2, 0.025);
    EXPECT_NEAR(wide.std().item<double>(), 0.5, 0.02);
    EXPECT_NEAR(((wide - 2).abs() < 0.5).to(float64).mean().item<double>(), 0.6827, 0.025);
    EXPECT_GT((wide - 2).abs().max().item<double>(), 1.5);
  }
}

TEST(GeneratorTest, TruncatedNormalStaysWithinTwoDeviations) {
  for (DType dtype : {float32, float64}) {
    const Tensor x = RandomGenerator::from_seed(1).truncated_normal(
        {10'001}, {.mean = 1, .stddev = 0.5, .dtype = dtype});
    const Tensor z = (x.to(float64) - 1) / 0.5;
    EXPECT_LE(z.abs().max().item<double>(), 2.000001);
    EXPECT_GT(z.abs().max().item<double>(), 1.95);
    EXPECT_NEAR(z.mean().item<double>(), 0, 0.05);
    EXPECT_NEAR(z.std().item<double>(), 0.8796, 0.03);
  }
}

TEST(GeneratorTest, TruncatedNormalsCanBePassedOver) {
  const Tensor all = RandomGenerator::from_seed(4).truncated_normal({3000}, {.dtype = float64});
  for (const int64_t count : {0, 1, 2, 3, 7, 127, 128, 129, 1000, 2999}) {
    internal::Philox random(4);
    const auto left = static_cast<int64_t>(
        internal::pass_truncated_normals(random, static_cast<uint64_t>(count)));
    EXPECT_THAT(left, AnyOf(0, 1));
    const auto rest = RandomGenerator::from_seed(4);
    rest.restore({.seed = 4, .stream = 0, .position = random.position()});
    EXPECT_TRUE(rest.truncated_normal({left + 3000 - count}, {.dtype = float64})
                    .narrow(0, left, 3000 - count)
                    .equal(all.narrow(0, count, 3000 - count)))
        << count;
  }
}

TEST(GeneratorTest, AZeroDeviationGivesTheMean) {
  EXPECT_TRUE((RandomGenerator::from_seed(1).normal({5}, {.mean = 3, .stddev = 0}) == 3)
                  .all()
                  .item<bool>());
}

TEST(GeneratorTest, ScalarsAndEmptyTensorsAreShapesToo) {
  const RandomGenerator generator = RandomGenerator::from_seed(1);
  EXPECT_EQ(generator.normal({}).dim(), 0);
  const auto before = generator.state();
  EXPECT_THAT(generator.uniform({0, 3}).sizes().vec(), ElementsAre(0, 3));
  EXPECT_EQ(generator.state(), before);
}

TEST(GeneratorTest, RefusesWhatItCannotFill) {
  const RandomGenerator generator = RandomGenerator::from_seed(1);
  EXPECT_THAT(
      [&] {
        (void)(generator.uniform({2, -1}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("[2,-1]")));
  EXPECT_THAT([&] { (void)(generator.normal({-3})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("[-3]")));
  EXPECT_THAT([&] { (void)(generator.uniform({1}, {.minval = 1, .maxval = 1})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("[1, 1)")));
  EXPECT_THAT([&] { (void)(generator.uniform({1}, {.minval = 0, .maxval = std::nan("")})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("nan")));
  EXPECT_THAT([&] { (void)(generator.uniform({1}, {.dtype = boolean})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("bool")));
  EXPECT_THAT([&] { (void)(generator.normal({1}, {.dtype = int64})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("int64")));
  EXPECT_THAT([&] { (void)(generator.truncated_normal({1}, {.dtype = DType::ComplexFloat})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("complex64")));
  EXPECT_THAT([&] { (void)(generator.normal({1}, {.stddev = -1})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("stddev -1")));
  EXPECT_THAT([&] { (void)(generator.uniform({1}, {.maxval = 300, .dtype = uint8})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("300")));
  EXPECT_THAT([&] { (void)(generator.uniform({1}, {.minval = 0.5, .maxval = 3, .dtype = int32})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("0.5")));
}

TEST(GeneratorTest, ASeedAndAStreamDecideTheNumbers) {
  const auto draw = [](uint64_t seed, uint64_t stream) {
    return RandomGenerator::from_seed(seed, stream).normal({100});
  };
  EXPECT_TRUE(draw(1, 0).equal(draw(1, 0)));
  EXPECT_FALSE(draw(1, 0).equal(draw(2, 0)));
  EXPECT_FALSE(draw(1, 0).equal(draw(1, 1)));
}

TEST(GeneratorTest, NonDeterministicGeneratorsDiffer) {
  EXPECT_NE(RandomGenerator::from_non_deterministic_state().next_u64(),
            RandomGenerator::from_non_deterministic_state().next_u64());
}

TEST(GeneratorTest, CopiesDrawFromOneStream) {
  const RandomGenerator original = RandomGenerator::from_seed(1);
  const RandomGenerator copy = original;
  const uint64_t first = copy.next_u64();
  EXPECT_EQ(first, RandomGenerator::from_seed(1).next_u64());
  EXPECT_NE(original.next_u64(), first);
}

TEST(GeneratorTest, RestoreContinuesExactlyAfterAnyDraw) {
  const RandomGenerator original = RandomGenerator::from_seed(1, 2);
  for (DType dtype : kFloatDtypes) {
    original.normal({3}, {.dtype = dtype});  // an odd number of normals
    original.truncated_normal({3}, {.dtype = dtype});
    original.uniform({3}, {.dtype = dtype});
    original.uniform({3}, {.maxval = 10, .dtype = int64});
    const RandomGenerator restored = RandomGenerator::from_seed(99);
    restored.restore(original.state());
    EXPECT_EQ(restored.state(), original.state());
    EXPECT_TRUE(
        restored.normal({5}, {.dtype = dtype}).equal(original.normal({5}, {.dtype = dtype})));
    EXPECT_EQ(restored.next_u64(), original.next_u64());
  }
}

TEST(GeneratorTest, FullIntegersReachBothEnds) {
  for (const DType dtype : {uint8, DType::Char, DType::Short, int32, int64}) {
    const Tensor x = RandomGenerator::from_seed(1).uniform_full_int({4000}, dtype);
    EXPECT_EQ(x.scalar_type(), dtype);
    const double quarter = std::ldexp(1.0, static_cast<int>(8 * x.element_size())) / 4;
    const double lowest = dtype == uint8 ? 0 : -2 * quarter;
    const Tensor values = x.to(float64);
    for (int part = 0; part < 4; ++part) {  // a quarter of the values in each quarter of the range
      const double count =
          ((values >= lowest + part * quarter) & (values < lowest + (part + 1) * quarter))
              .sum()
              .item<double>();
      EXPECT_NEAR(count, 1000, 150) << x.scalar_type() << " " << part;
    }
  }
  EXPECT_THAT([] { (void)RandomGenerator::from_seed(1).uniform_full_int({1}, float32); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("float32")));
}

TEST(GeneratorTest, SkipsWhatUniformWouldDraw) {
  const RandomGenerator drawing = RandomGenerator::from_seed(1);
  const RandomGenerator skipping = RandomGenerator::from_seed(1);
  drawing.uniform({7});
  skipping.skip(7);
  EXPECT_EQ(skipping.state(), drawing.state());
  EXPECT_TRUE(skipping.normal({4}).equal(drawing.normal({4})));
}

TEST(GeneratorTest, SplitsIntoGeneratorsOfTheirOwn) {
  const auto numbers = [](int64_t index) {
    const auto parts = RandomGenerator::from_seed(1).split(3);
    EXPECT_EQ(parts.size(), 3u);
    return parts[static_cast<size_t>(index)].normal({100});
  };
  EXPECT_TRUE(numbers(1).equal(numbers(1)));
  EXPECT_FALSE(numbers(0).equal(numbers(1)));
  EXPECT_FALSE(numbers(1).equal(numbers(2)));
  const RandomGenerator generator = RandomGenerator::from_seed(1);
  EXPECT_FALSE(generator.split()[0].normal({9}).equal(generator.split()[0].normal({9})));
  EXPECT_TRUE(generator.split(0).empty());
  EXPECT_THAT([&] { (void)generator.split(-1); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("-1 seeds")));
}

TEST(GeneratorTest, MakesSeedsForStatelessOperations) {
  const RandomGenerator generator = RandomGenerator::from_seed(1);
  const Tensor seeds = generator.make_seeds(3);
  EXPECT_THAT(seeds.sizes().vec(), ElementsAre(2, 3));
  EXPECT_EQ(seeds.scalar_type(), int64);
  EXPECT_TRUE(seeds[0].equal(RandomGenerator::from_seed(1).uniform_full_int({3})));
  EXPECT_EQ(seeds[1].abs().sum().item<int64_t>(), 0);
  EXPECT_FALSE(generator.make_seeds(3).equal(seeds));
  EXPECT_THAT(generator.make_seeds(0).sizes().vec(), ElementsAre(2, 0));
}

// Drawing in parts gives what drawing at once gives, for even parts, so that runs of the
// implementation cannot be seen.
TEST(GeneratorTest, PartsMakeTheWhole) {
  const Tensor whole = RandomGenerator::from_seed(1).normal({1000});
  const RandomGenerator generator = RandomGenerator::from_seed(1);
  EXPECT_TRUE(generator.normal({300}).equal(whole.narrow(0, 0, 300)));
  EXPECT_TRUE(generator.normal({700}).equal(whole.narrow(0, 300, 700)));
}

TEST(GeneratorTest, EachCallFromSeveralThreadsIsWhole) {
  const RandomGenerator generator = RandomGenerator::from_seed(1);
  std::mutex mutex;
  std::set<uint64_t> drawn;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const uint64_t value = generator.next_u64();
        std::lock_guard lock(mutex);
        drawn.insert(value);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(drawn.size(), 400u);
  EXPECT_EQ(generator.state().position, 800u);
}

// These numbers are a promise: a seed means the same on every machine and in every version.
TEST(GeneratorTest, DrawsTheSameNumbersForEver) {
  const RandomGenerator generator = RandomGenerator::from_seed(42);
  EXPECT_EQ(generator.uniform({}).item<float>(), 0x1.39d5ep-1f);
  EXPECT_EQ(generator.normal({}).item<float>(), 0x1.1a6d26p+0f);
  EXPECT_EQ(generator.normal({}, {.dtype = float64}).item<double>(), -0x1.7a3f30270c78ap+1);
  EXPECT_EQ(generator.truncated_normal({}).item<float>(), -0x1.7e53e2p+0f);
  EXPECT_EQ(generator.uniform({}, {.maxval = 1000, .dtype = int64}).item<int64_t>(), 729);
}

TEST(SetSeedTest, MakesTheGlobalGeneratorRepeatable) {
  set_seed(7);
  EXPECT_EQ(get_seed(), 7u);
  const Tensor first = normal({4});
  const Tensor second = uniform({4});
  const Tensor third = truncated_normal({4});
  EXPECT_FALSE(normal({4}).equal(first));
  set_seed(7);
  EXPECT_TRUE(normal({4}).equal(first));
  EXPECT_TRUE(uniform({4}).equal(second));
  EXPECT_TRUE(truncated_normal({4}).equal(third));
  set_seed(8);
  EXPECT_FALSE(normal({4}).equal(first));
}

TEST(SetSeedTest, DecidesTheSeedsGivenAfterwards) {
  set_seed(7);
  const uint64_t first = internal::next_seed();
  const uint64_t second = internal::next_seed();
  EXPECT_NE(first, second);
  normal({4});  // draws do not disturb the seeds
  set_seed(7);
  EXPECT_EQ(internal::next_seed(), first);
  EXPECT_EQ(internal::next_seed(), second);
  set_seed(8);
  EXPECT_NE(internal::next_seed(), first);
}

TEST(ScopedGeneratorTest, IsTheCallingThreadsGlobalGenerator) {
  set_seed(1);
  const Generator outer = Generator::from_seed(10);  // by TensorFlow's name
  const RandomGenerator inner = RandomGenerator::from_seed(11);
  {
    internal::ScopedGenerator use_outer(outer);
    {
      internal::ScopedGenerator use_inner(inner);
      EXPECT_EQ(get_global_generator().state().seed, 11u);
    }
    EXPECT_EQ(get_global_generator().state().seed, 10u);
    EXPECT_TRUE(normal({4}).equal(RandomGenerator::from_seed(10).normal({4})));
    std::thread([] { EXPECT_EQ(get_global_generator().state().seed, 1u); }).join();
  }
  EXPECT_EQ(get_global_generator().state().seed, 1u);
  EXPECT_EQ(get_global_generator().state().position, 0u);
}

TEST(RandomGeneratorTest, ATraceDrawsOnButLeavesItWhereItStands) {
  const auto generator = RandomGenerator::from_seed(7);
  generator.skip(3);
  const auto before = generator.state();
  {
    const internal::Tracing tracing;
    const uint64_t first = generator.next_u64();
    EXPECT_NE(generator.next_u64(), first);  // who draws until a number will do comes to an end
    {
      const internal::Tracing for_real(false);
      EXPECT_EQ(generator.next_u64(), first);
    }
  }
  EXPECT_EQ(generator.state().position, before.position + 2);
}

}  // namespace
}  // namespace cohort::random
