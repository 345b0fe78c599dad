#include "cohort/keras/base/initializers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/distribute/variables/known_values.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/random.h"

namespace cohort::keras::initializers {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int64_t kIn = 300;
constexpr int64_t kOut = 100;

TEST(Initializer, ConstantsAreConstant) {
  EXPECT_THAT(elements(Initializer("zeros")({3}, float32)), Each(0));
  EXPECT_THAT(elements(Initializer("ones")({3}, float32)), Each(1));
  EXPECT_THAT(elements(Constant(2.5)({2, 2}, float64)), Each(2.5));
  EXPECT_EQ(Constant(2.5)({2, 2}, float64).scalar_type(), float64);
}

TEST(Initializer, UniformOnesStayInsideTheirLimit) {
  const auto largest = [](const Initializer& initializer) {
    return initializer({kIn, kOut}, float64).abs().max().item<double>();
  };
  const auto expect_limit = [&](const Initializer& initializer, double limit) {
    const double found = largest(initializer);
    EXPECT_LE(found, limit);
    EXPECT_GT(found, limit * 0.99);
  };
  expect_limit(GlorotUniform({.seed = 1}), std::sqrt(6.0 / (kIn + kOut)));
  expect_limit(HeUniform({.seed = 1}), std::sqrt(6.0 / kIn));
  expect_limit(LecunUniform({.seed = 1}), std::sqrt(3.0 / kIn));
  expect_limit(
      VarianceScaling({.scale = 2, .mode = "fan_out", .distribution = "uniform", .seed = 1}),
      std::sqrt(6.0 / kOut));
  expect_limit(RandomUniform({.minval = -2, .maxval = 2, .seed = 1}), 2);
}

TEST(Initializer, NormalOnesHaveTheirVariance) {
  const auto stddev = [](const Initializer& initializer) {
    return initializer({kIn, kOut}, float64).std().item<double>();
  };
  EXPECT_THAT(stddev(GlorotNormal({.seed = 1})), DoubleNear(std::sqrt(2.0 / (kIn + kOut)), 1e-3));
  EXPECT_THAT(stddev(HeNormal({.seed = 1})), DoubleNear(std::sqrt(2.0 / kIn), 1e-3));
  EXPECT_THAT(stddev(LecunNormal({.seed = 1})), DoubleNear(std::sqrt(1.0 / kIn), 1e-3));
  EXPECT_THAT(stddev(RandomNormal({.stddev = 3, .seed = 1})), DoubleNear(3, 0.05));
  const Tensor cut = TruncatedNormal({.stddev = 1, .seed = 1})({kIn, kOut}, float64);
  EXPECT_THAT(stddev(VarianceScaling({.scale = 3, .mode = "fan_out", .seed = 1})),
              DoubleNear(std::sqrt(3.0 / kOut), 2e-3));
  EXPECT_LE(cut.abs().max().item<double>(), 2);
  EXPECT_THAT(cut.std().item<double>(), DoubleNear(0.8796, 0.01));
}

TEST(Initializer, VarianceScalingIsTheRuleOfTheOthers) {
  const auto values = [](const Initializer& initializer) {
    return elements(initializer({3, 4}, float32));
  };
  EXPECT_EQ(values(VarianceScaling({.scale = 2, .seed = 7})), values(HeNormal({.seed = 7})));
  EXPECT_EQ(values(VarianceScaling({.mode = "fan_avg", .distribution = "uniform", .seed = 7})),
            values(GlorotUniform({.seed = 7})));
  const Tensor normal =
      VarianceScaling({.distribution = "untruncated_normal", .seed = 1})({kIn, kOut}, float64);
  EXPECT_THAT(normal.std().item<double>(), DoubleNear(std::sqrt(1.0 / kIn), 1e-3));
  EXPECT_GT(normal.abs().max().item<double>(), 3 * std::sqrt(1.0 / kIn));  // truncated: below 2.3
}

TEST(Initializer, VarianceScalingRefusesWhatIsNone) {
  const auto refused = [](const VarianceScalingOptions& options) {
    return thrown<InvalidArgumentError>([&] { (void)VarianceScaling(options); });
  };
  EXPECT_THAT(refused({.scale = 0}), HasSubstr("the scale is 0"));
  EXPECT_THAT(refused({.mode = "fan"}), HasSubstr("'fan'"));
  EXPECT_THAT(refused({.distribution = "gamma"}), HasSubstr("'gamma'"));
}

TEST(Initializer, FansOfAConvolutionCountItsReceptiveField) {
  // fan_in = 3 * 3 * 4, fan_out = 3 * 3 * 8.
  const double limit = std::sqrt(6.0 / (9 * 4 + 9 * 8));
  const double found = GlorotUniform({.seed = 2})({3, 3, 4, 8}, float64).abs().max().item<double>();
  EXPECT_LE(found, limit);
  EXPECT_GT(found, limit * 0.9);
}

TEST(Initializer, SeedsDecideTheValues) {
  const std::vector<int64_t> shape{4};
  const auto a = elements(GlorotUniform({.seed = 7})(shape, float32));
  EXPECT_EQ(a, elements(GlorotUniform({.seed = 7})(shape, float32)));
  EXPECT_NE(a, elements(GlorotUniform({.seed = 8})(shape, float32)));

  random::set_seed(5);
  const auto first = elements(Initializer("he_normal")(shape, float32));
  const auto second = elements(Initializer("he_normal")(shape, float32));
  random::set_seed(5);
  EXPECT_EQ(first, elements(Initializer("he_normal")(shape, float32)));
  EXPECT_NE(first, second);
}

TEST(Initializer, TwoWeightsOfOneInitializerDiffer) {
  const Initializer shared = RandomNormal({.seed = 3});
  EXPECT_NE(elements(shared({4}, float32)), elements(shared({4}, float32)));
}

// As a strategy asks that keeps parts of variables elsewhere.
TEST(Initializer, DescribesTheValuesThatItWouldMake) {
  const std::vector<int64_t> shape{37, 3};
  const std::map<std::string, std::function<Initializer()>> makers = {
      {"constant", [] { return Constant(0.5); }},
      {"uniform", [] { return RandomUniform({.seed = 3}); }},
      {"normal", [] { return RandomNormal({.mean = 1, .seed = 3}); }},
      {"truncated normal", [] { return TruncatedNormal({.mean = 1, .stddev = 2, .seed = 3}); }},
      {"glorot uniform", [] { return GlorotUniform({.seed = 3}); }},
      {"glorot normal", [] { return GlorotNormal({.seed = 3}); }},
      {"he uniform", [] { return HeUniform({.seed = 3}); }},
      {"he normal", [] { return HeNormal({.seed = 3}); }},
      {"lecun uniform", [] { return LecunUniform({.seed = 3}); }},
      {"variance scaling",
       [] { return VarianceScaling({.distribution = "untruncated_normal", .seed = 3}); }},
      {"lecun normal", [] { return LecunNormal({.seed = 3}); }},
  };
  for (const auto& [name, make] : makers) {
    for (const DType dtype : {float32, float64, DType(at::kHalf)}) {
      const Initializer making = make(), describing = make();
      for (int weight = 0; weight < 3; ++weight) {  // each goes on where the one before ended
        const auto known = describing.for_variable(shape, dtype).describe();
        ASSERT_TRUE(known.has_value()) << name;
        const Tensor expected = making(shape, dtype);
        EXPECT_TRUE(internal::make_known_values(*known, shape, 0, dtype).equal(expected))
            << name << ' ' << dtype;
        for (int64_t rows = 1; rows < 37; ++rows) {  // however they are divided
          EXPECT_TRUE(internal::make_known_values(*known, {37 - rows, 3}, 3 * rows, dtype)
                          .equal(expected.narrow(0, rows, 37 - rows)))
              << name << " from row " << rows;
        }
      }
      // A weight that was restored before takes its place in the stream.
      describing.for_variable(shape, dtype).skip();
      (void)making(shape, dtype);
      EXPECT_TRUE(describing(shape, dtype).equal(making(shape, dtype))) << name;
    }
  }
  EXPECT_FALSE(Orthogonal().for_variable(shape, float32).describe().has_value());
  EXPECT_FALSE(
      RandomUniform({.minval = 0, .maxval = 9}).for_variable(shape, int64).describe().has_value());
}

TEST(Initializer, OrthogonalOf16BitsIsRoundedFromFloat32) {
  const auto made = [](DType dtype) { return Orthogonal({.seed = 5})({4, 6}, dtype); };
  for (const DType dtype : {at::kHalf, at::kBFloat16}) {
    EXPECT_EQ(made(dtype).scalar_type(), dtype);
    EXPECT_TRUE(made(dtype).equal(made(float32).to(dtype)));
  }
}

TEST(Initializer, PartsOfAVariableAreOfOneWhole) {
  const auto whole =
      HeNormal({.seed = 4}).for_variable({5, 2}, float32)(distribute::ShardInfo::whole({5, 2}));
  const auto in_parts = HeNormal({.seed = 4}).for_variable({5, 2}, float32);
  EXPECT_EQ(elements(in_parts({.shape = {3, 2}, .offset = {0, 0}})),
            elements(whole.narrow(0, 0, 3)));
  EXPECT_EQ(elements(in_parts({.shape = {2, 2}, .offset = {3, 0}})),
            elements(whole.narrow(0, 3, 2)));
}

TEST(Initializer, UnknownNameListsTheKnownOnes) {
  const std::string text = thrown<InvalidArgumentError>([] { Initializer("glorot"); });
  EXPECT_THAT(text, HasSubstr("'glorot'"));
  EXPECT_THAT(text, HasSubstr("glorot_uniform"));
}

}  // namespace
}  // namespace cohort::keras::initializers
