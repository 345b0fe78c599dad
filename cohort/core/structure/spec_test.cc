#include "cohort/core/structure/spec.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int64_t kAny = kUnknownDim;

std::string printed_spec(const TensorSpec& spec) { return internal::str(spec); }

TEST(TensorSpecTest, TakesAShapeInBraces) {
  EXPECT_EQ(printed_spec(TensorSpec({4}, float32)), "TensorSpec(shape=(4,), dtype=float32)");
  EXPECT_EQ(printed_spec(TensorSpec({kUnknownDim, 3}, int64)),
            "TensorSpec(shape=(None, 3), dtype=int64)");
  EXPECT_EQ(printed_spec(TensorSpec({}, int64)), "TensorSpec(shape=(), dtype=int64)");
  EXPECT_EQ(printed_spec(TensorSpec({{}}, int64)), "TensorSpec(shape=(), dtype=int64)");
  EXPECT_EQ(printed_spec(TensorSpec({{2, 3}}, int64)), "TensorSpec(shape=(2, 3), dtype=int64)");
  EXPECT_EQ(printed_spec(TensorSpec::strings({2})), "TensorSpec(shape=(2,), dtype=string)");
  EXPECT_THROW(TensorSpec({-2}, int64), InvalidArgumentError);
}

TEST(TensorSpecTest, HoldsShapeDtypeAndName) {
  const TensorSpec spec({{kAny, 28}}, float32, "image");
  EXPECT_THAT(*spec.shape(), ElementsAre(kAny, 28));
  EXPECT_EQ(spec.dtype(), float32);
  EXPECT_EQ(spec.name(), "image");
  EXPECT_FALSE(spec.is_string());
}

TEST(TensorSpecTest, RefusesWrongSizes) {
  EXPECT_THAT(
      [&] {
        (void)(TensorSpec({{2, -2}}, float32));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("-2")));
  EXPECT_THAT([&] { (void)(TensorSpec({{2}}, float32).with_leading_dim(-3)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("-3")));
  EXPECT_THAT([&] { (void)(TensorSpec({{2}}, float32).with_batch_dim(-3)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("-3")));
}

TEST(TensorSpecTest, StringsHaveNoDtype) {
  const TensorSpec spec = TensorSpec::strings({{3}});
  EXPECT_TRUE(spec.is_string());
  EXPECT_THAT([&] { (void)(spec.dtype()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("dtype=string")));
}

TEST(TensorSpecTest, IsFullyDefinedWhereEverySizeIsKnown) {
  EXPECT_TRUE(TensorSpec({{2, 3}}, float32).is_fully_defined());
  EXPECT_TRUE(TensorSpec({std::vector<int64_t>{}}, float32).is_fully_defined());
  EXPECT_FALSE(TensorSpec({{kAny, 3}}, float32).is_fully_defined());
  EXPECT_FALSE(TensorSpec(std::nullopt, float32).is_fully_defined());
}

TEST(TensorSpecTest, DescribesALeafExactly) {
  EXPECT_EQ(TensorSpec::of(at::zeros({2, 3}, int32)), TensorSpec({{2, 3}}, int32));
  EXPECT_EQ(TensorSpec::of(StringTensor({"a"})), TensorSpec::strings({{1}}));
  EXPECT_THAT([&] { (void)(TensorSpec::of(Leaf(Tensor()))); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("undefined")));
}

TEST(TensorSpecTest, FitsByKindDtypeRankAndKnownSizes) {
  const TensorSpec spec({{kAny, 3}}, float32);
  EXPECT_TRUE(spec.is_compatible_with(at::zeros({5, 3})));
  EXPECT_TRUE(spec.is_compatible_with(at::zeros({0, 3})));
  EXPECT_FALSE(spec.is_compatible_with(at::zeros({5, 4})));
  EXPECT_FALSE(spec.is_compatible_with(at::zeros({3})));
  EXPECT_FALSE(spec.is_compatible_with(at::zeros({5, 3}, float64)));
  EXPECT_FALSE(spec.is_compatible_with(StringTensor({"a", "b", "c"}).reshape({1, 3})));
  EXPECT_FALSE(spec.is_compatible_with(Leaf(Tensor())));
  EXPECT_TRUE(TensorSpec(std::nullopt, float32).is_compatible_with(at::zeros({5, 3, 1})));
  EXPECT_TRUE(TensorSpec::strings({{kAny}}).is_compatible_with(StringTensor({"a"})));
  EXPECT_FALSE(TensorSpec::strings({{kAny}}).is_compatible_with(at::zeros({1})));
}

TEST(TensorSpecTest, MostSpecificCompatibleKeepsWhatBothKnow) {
  const TensorSpec a({{4, 3, kAny}}, float32);
  EXPECT_EQ(a.most_specific_compatible(TensorSpec({{5, 3, 2}}, float32)),
            TensorSpec({{kAny, 3, kAny}}, float32));
  EXPECT_EQ(a.most_specific_compatible(a), a);
  EXPECT_EQ(a.most_specific_compatible(TensorSpec({{4}}, float32)),
            TensorSpec(std::nullopt, float32));
  EXPECT_EQ(a.most_specific_compatible(TensorSpec(std::nullopt, float32)),
            TensorSpec(std::nullopt, float32));
  EXPECT_THAT([&] { (void)(a.most_specific_compatible(TensorSpec({{4}}, int64))); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("int64")));
  EXPECT_THAT([&] { (void)(a.most_specific_compatible(TensorSpec::strings({{4}}))); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("string")));
}

TEST(TensorSpecTest, MostSpecificCompatibleKeepsACommonNameOnly) {
  const TensorSpec a({{1}}, float32, "a");
  EXPECT_EQ(a.most_specific_compatible(TensorSpec({{2}}, float32, "a")).name(), "a");
  EXPECT_EQ(a.most_specific_compatible(TensorSpec({{2}}, float32, "b")).name(), "");
}

TEST(TensorSpecTest, ChangesTheLeadingDimension) {
  const TensorSpec spec({{28, 1}}, uint8);
  EXPECT_EQ(spec.with_leading_dim(kAny), TensorSpec({{kAny, 28, 1}}, uint8));
  EXPECT_EQ(spec.without_leading_dim(), TensorSpec({{1}}, uint8));
  EXPECT_EQ(spec.with_batch_dim(7), TensorSpec({{7, 1}}, uint8));
  EXPECT_EQ(spec.with_leading_dim(2).without_leading_dim(), spec);
}

TEST(TensorSpecTest, AnUnknownRankStaysUnknown) {
  const TensorSpec spec(std::nullopt, uint8);
  EXPECT_EQ(spec.with_leading_dim(1), spec);
  EXPECT_EQ(spec.without_leading_dim(), spec);
  EXPECT_EQ(spec.with_batch_dim(3), spec);
}

TEST(TensorSpecTest, AScalarHasNoLeadingDimension) {
  const TensorSpec scalar({std::vector<int64_t>{}}, float32);
  EXPECT_THAT([&] { (void)(scalar.without_leading_dim()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("shape=()")));
  EXPECT_THAT([&] { (void)(scalar.with_batch_dim(2)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("shape=()")));
  EXPECT_EQ(scalar.with_leading_dim(2), TensorSpec({{2}}, float32));
}

TEST(TensorSpecTest, EqualityIgnoresNames) {
  EXPECT_EQ(TensorSpec({{2}}, float32, "a"), TensorSpec({{2}}, float32, "b"));
  EXPECT_FALSE(TensorSpec({{2}}, float32) == TensorSpec({{kAny}}, float32));
  EXPECT_FALSE(TensorSpec({{2}}, float32) == TensorSpec({{2}}, float64));
  EXPECT_FALSE(TensorSpec({{2}}, float32) == TensorSpec::strings({{2}}));
}

TEST(TensorSpecTest, PrintsInTensorFlowsForm) {
  EXPECT_EQ(printed_spec(TensorSpec({{kAny, 28}}, float32)),
            "TensorSpec(shape=(None, 28), dtype=float32)");
  EXPECT_EQ(printed_spec(TensorSpec({{3}}, int64)), "TensorSpec(shape=(3,), dtype=int64)");
  EXPECT_EQ(printed_spec(TensorSpec({std::vector<int64_t>{}}, boolean)),
            "TensorSpec(shape=(), dtype=bool)");
  EXPECT_EQ(printed_spec(TensorSpec(std::nullopt, uint8, "x")),
            "TensorSpec(shape=<unknown>, dtype=uint8, name='x')");
  EXPECT_EQ(printed_spec(TensorSpec::strings({{kAny}})), "TensorSpec(shape=(None,), dtype=string)");
}

}  // namespace
}  // namespace cohort
