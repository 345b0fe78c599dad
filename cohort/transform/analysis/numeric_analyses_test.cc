#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cohort/core/testing_errors.h"
#include "cohort/transform/analysis/testing_analyses.h"

namespace cohort::internal {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
std::vector<T> numbers(const Leaf& leaf) {
  const Tensor tensor = leaf.tensor().contiguous();
  return {tensor.data_ptr<T>(), tensor.data_ptr<T>() + tensor.numel()};
}

template <class T>
T number(const AnalysisResult& result, std::string_view name) {
  EXPECT_EQ(result.constant(name).dim(), 0);
  return numbers<T>(result.constant(name)).at(0);
}

Batches floats(std::vector<std::vector<float>> batches) {
  Batches out;
  for (const auto& values : batches) out.push_back({dense(of_vector(values))});
  return out;
}

TEST(MinAndMax, AreTheOutermostValues) {
  const auto analysis = min_and_max_analysis();
  const auto result = analyse(*analysis, floats({{3, -1.5, 2}, {7, 0}}));
  EXPECT_EQ(number<float>(result, "min"), -1.5);
  EXPECT_EQ(number<float>(result, "max"), 7);
  std::vector<float> many(1000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i * 37 % 1000);
  EXPECT_EQ(number<float>(analyse(*analysis, floats({many})), "min"), 0);
  EXPECT_EQ(number<float>(analyse(*analysis, floats({many})), "max"), 999);
  const auto infinite = analyse(*analysis, floats({{kInfinity, 1, -kInfinity}}));
  EXPECT_EQ(number<float>(infinite, "max"), kInfinity);
  EXPECT_EQ(number<float>(infinite, "min"), -kInfinity);
}

TEST(MinAndMax, AreNanWhereAValueIs) {
  std::vector<float> many(100, 1);
  for (const size_t place : {0, 50, 99}) {
    auto values = many;
    values[place] = kNan;
    const auto result = analyse(*min_and_max_analysis(), floats({{5}, values, {2}}));
    EXPECT_TRUE(std::isnan(number<float>(result, "min")));
    EXPECT_TRUE(std::isnan(number<float>(result, "max")));
  }
}

TEST(MinAndMax, OfNoValuesAreTensorFlowTransforms) {
  const auto of_floats = analyse(*min_and_max_analysis({.dtype = float32}), {});
  EXPECT_EQ(number<float>(of_floats, "min"), kInfinity);
  EXPECT_EQ(number<float>(of_floats, "max"), -kInfinity);
  const auto missing = ragged(of_vector(std::vector<int64_t>{}), {0, 0, 0});
  const auto of_integers = analyse(*min_and_max_analysis(), {{missing}});
  EXPECT_EQ(number<int64_t>(of_integers, "min"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(number<int64_t>(of_integers, "max"), -std::numeric_limits<int64_t>::max());
}

TEST(MinAndMax, KeepTheDtype) {
  const Tensor values = of_vector(std::vector<int64_t>{3, 100, -7});
  for (const DType dtype :
       {DType::Char, DType::Short, int32, int64, DType::Half, float32, float64}) {
    const auto result = analyse(*min_and_max_analysis(), {{dense(values.to(dtype))}});
    EXPECT_EQ(result.constant("min").tensor().scalar_type(), dtype);
    EXPECT_EQ(result.constant("min").tensor().to(int64).item<int64_t>(), -7);
    EXPECT_EQ(result.constant("max").tensor().to(int64).item<int64_t>(), 100);
  }
  constexpr auto kLowest = std::numeric_limits<int64_t>::lowest();
  const auto lowest =
      analyse(*min_and_max_analysis(), {{dense(of_vector(std::vector<int64_t>{kLowest}))}});
  EXPECT_EQ(number<int64_t>(lowest, "max"), kLowest);
  const auto large =
      analyse(*min_and_max_analysis(), {{dense(of_vector(std::vector<int64_t>{(1L << 53) + 1}))}});
  EXPECT_EQ(number<int64_t>(large, "max"), (1L << 53) + 1);
}

TEST(Sum, IsExact) {
  const auto analysis = sum_analysis();
  EXPECT_EQ(number<float>(analyse(*analysis, floats({{1e30F, 1}, {-1e30F}})), "sum"), 1);
  EXPECT_EQ(number<float>(analyse(*analysis, floats({{3e38F, 3e38F}})), "sum"), kInfinity);
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(number<float>(analyse(*analysis, floats({{least, -3e38F, least, 3e38F}})), "sum"),
            2 * least);
  EXPECT_EQ(number<float>(analyse(*analysis, {}), "sum"), 0);
}

TEST(Sum, AddsWhatIsNotFinite) {
  const auto sum = [](std::vector<float> values) {
    return number<float>(analyse(*sum_analysis(), floats({values})), "sum");
  };
  EXPECT_EQ(sum({1, kInfinity, 2}), kInfinity);
  EXPECT_EQ(sum({-kInfinity, 2}), -kInfinity);
  EXPECT_TRUE(std::isnan(sum({kInfinity, -kInfinity})));
  EXPECT_TRUE(std::isnan(sum({1, kNan})));
}

TEST(Sum, OfIntegersHas64Bits) {
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  const auto sum = [](const Tensor& values) {
    return number<int64_t>(analyse(*sum_analysis(), {{dense(values)}}), "sum");
  };
  EXPECT_EQ(sum(of_vector(std::vector<int32_t>{2000000000, 2000000000})), 4000000000);
  EXPECT_EQ(sum(of_vector(std::vector<uint8_t>{255, 255})), 510);
  EXPECT_EQ(sum(of_vector(std::vector<int64_t>{kMost, 1})), -kMost - 1) << "modulo 2^64";
}

TEST(Size, CountsValues) {
  const auto analysis = size_analysis();
  EXPECT_EQ(number<int64_t>(analyse(*analysis, floats({{1, kNan}, {2}})), "size"), 3);
  EXPECT_EQ(number<int64_t>(analyse(*analysis, {{dense(StringTensor{"a", "b"})}}), "size"), 2);
  const auto some = ragged(of_vector(std::vector<float>{1, 2, 3}), {0, 2, 2, 3});
  EXPECT_EQ(number<int64_t>(analyse(*analysis, {{some}, {some}}), "size"), 6);
  const auto each = analyse(*size_analysis({.reduce_instance_dims = false}),
                            {{dense(zeros({5, 2}))}, {dense(zeros({1, 2}))}});
  EXPECT_THAT(numbers<int64_t>(each.constant("size")), testing::ElementsAre(6, 6));
}

TEST(MeanAndVariance, PassOverWhatIsNotFinite) {
  const auto result =
      analyse(*mean_and_variance_analysis(), floats({{1, 2, kNan}, {4, kInfinity, -kInfinity}}));
  EXPECT_EQ(number<float>(result, "mean"), 7.0F / 3);
  EXPECT_EQ(number<float>(result, "variance"), 14.0F / 9);
  EXPECT_EQ(number<int64_t>(result, "count"), 3);
  const auto none = analyse(*mean_and_variance_analysis(), floats({{kNan}}));
  EXPECT_EQ(number<float>(none, "mean"), 0);
  EXPECT_EQ(number<float>(none, "variance"), 0);
}

TEST(MeanAndVariance, AreExactForAllDtypes) {
  const auto variance = [](const Tensor& values) {
    const auto result = analyse(*mean_and_variance_analysis(), {{dense(values)}});
    return result.constant("variance").tensor().to(float64).item<double>();
  };
  const Tensor small = of_vector(std::vector<int64_t>{4, 7, 13, 16});
  for (const DType dtype : {uint8, DType::Short, int32, int64, DType::Half, float32, float64}) {
    EXPECT_EQ(variance(small.to(dtype)), 22.5) << dtype_name(dtype);
  }
  EXPECT_EQ(variance((small + 1000000000).to(float64)), 22.5);
  EXPECT_EQ(variance(small + 4000000000000000000), 22.5);
  EXPECT_EQ(variance(of_vector(std::vector<float>{3e38F, -3e38F})), kInfinity);
  EXPECT_EQ(variance(of_vector(std::vector<float>{7, 7, 7})), 0);
}

TEST(MeanAndVariance, OfIntegersAreFloat32) {
  const auto result = analyse(*mean_and_variance_analysis(),
                              {{dense(of_vector(std::vector<int64_t>{16777217, 16777219}))}});
  EXPECT_EQ(number<float>(result, "mean"), 16777218);
}

TEST(NumericAnalyses, KeepInstanceDimensions) {
  const NumericOptions each = {.reduce_instance_dims = false};
  const Tensor values = of_vector(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}).view({2, 2, 2});
  const Batches batches = {{dense(values)}, {dense(values + 1)}};
  const auto sum = analyse(*sum_analysis(each), batches).constant("sum");
  EXPECT_EQ(sum.sizes(), (std::vector<int64_t>{2, 2}));
  EXPECT_THAT(numbers<float>(sum), testing::ElementsAre(14, 18, 22, 26));
  EXPECT_THAT(numbers<float>(analyse(*min_and_max_analysis(each), batches).constant("max")),
              testing::ElementsAre(6, 7, 8, 9));
  EXPECT_THAT(numbers<float>(analyse(*mean_and_variance_analysis(each), batches).constant("mean")),
              testing::ElementsAre(3.5, 4.5, 5.5, 6.5));
}

TEST(NumericAnalyses, ReadViewsAndRaggedRows) {
  const Tensor square = of_vector(std::vector<float>{1, 2, 3, 4}).view({2, 2});
  const auto sum = analyse(*sum_analysis({.reduce_instance_dims = false}), {{dense(square.t())}});
  EXPECT_THAT(numbers<float>(sum.constant("sum")), testing::ElementsAre(3, 7));
  const auto some = ragged(of_vector(std::vector<float>{1, 2, 4}), {0, 0, 2, 3});
  EXPECT_EQ(number<float>(analyse(*sum_analysis(), {{some}}), "sum"), 7);
}

TEST(NumericAnalyses, GiveTheSameBitsInAnyOrder) {
  std::mt19937 random(5);
  Batches batches;
  for (int i = 0; i < 20; ++i) {
    std::vector<float> values(12);
    for (float& value : values) {
      value = std::ldexp(static_cast<float>(static_cast<int32_t>(random())),
                         static_cast<int>(random() % 80) - 40);
    }
    batches.push_back({dense(of_vector(values).view({4, 3}))});
  }
  AnalysisFolder folder;
  for (const bool reduce : {true, false}) {
    const NumericOptions options = {.reduce_instance_dims = reduce};
    for (const auto& analysis : {min_and_max_analysis(options), sum_analysis(options),
                                 size_analysis(options), mean_and_variance_analysis(options)}) {
      const auto whole = analyse(*analysis, batches);
      for (unsigned seed = 0; seed < 6; ++seed) {
        const auto parts = analyse_in_parts(*analysis, batches, 5, seed, folder.context());
        for (const auto& [name, leaf] : whole.constants) {
          EXPECT_TRUE(leaf.tensor().equal(parts.constant(name).tensor())) << name << seed;
        }
      }
    }
  }
}

TEST(NumericAnalyses, GoOnFromSavedPiecesOfBoundedSize) {
  const auto analysis = mean_and_variance_analysis({.reduce_instance_dims = false});
  AnalysisFolder folder;
  const auto accumulator = analysis->start(folder.context());
  // Rows of numbers far apart, whose sums have many digits.
  const Tensor wide = (range(17000).to(float32) + 0.5F).view({1, 17000});
  for (const float scale : {1e30F, 1.F, 1e-30F}) {
    const ColumnBatch column = dense(wide * scale);
    accumulator->add({&column, 1});
  }
  const auto restored = analysis->start(folder.context());
  int pieces = 0;
  for (auto saved = accumulator->save(); auto piece = saved->next(); ++pieces) {
    EXPECT_LT(piece->size(), kPieceBytes + 10000);
    restored->add_saved(*piece, "a test");
  }
  EXPECT_GT(pieces, 1);
  EXPECT_TRUE(restored->finish()
                  .constant("variance")
                  .tensor()
                  .equal(accumulator->finish().constant("variance").tensor()));
}

TEST(NumericAnalyses, RefuseWhatTheyCannotTake) {
  AnalysisFolder folder;
  const auto error = [&](const Analysis& analysis, const Batches& batches) {
    return thrown<InvalidArgumentError>([&] { analyse(analysis, batches, folder.context()); });
  };
  using testing::HasSubstr;
  EXPECT_THAT(error(*sum_analysis(), {{dense(zeros({2}).to(boolean))}}),
              HasSubstr("the analysis sum(reduce_instance_dims=true): it takes integers"));
  EXPECT_THAT(error(*sum_analysis(), {{dense(StringTensor{"a"})}}), HasSubstr("got strings"));
  EXPECT_THAT(error(*sum_analysis({.dtype = float64}), {{dense(zeros({2}))}}),
              HasSubstr("is float64, but a batch has float32"));
  EXPECT_THAT(error(*sum_analysis(), {{dense(zeros({2}))}, {dense(zeros({2}).to(int64))}}),
              HasSubstr("has int64"));
  const NumericOptions each = {.reduce_instance_dims = false};
  EXPECT_THAT(error(*sum_analysis(each), {{dense(zeros({2, 3}))}, {dense(zeros({2, 4}))}}),
              HasSubstr("shape [3], but its rows have [4]"));
  EXPECT_THAT(error(*sum_analysis(each), {{ragged(zeros({2}), {0, 2})}}), HasSubstr("ragged"));
  EXPECT_THAT(error(*sum_analysis(), {{ragged(zeros({2}), {0, 3, 2})}}), HasSubstr("ascend"));
  EXPECT_THAT(error(*sum_analysis(), {{{zeros({2}), std::nullopt, 3}}}), HasSubstr("3 rows"));
  EXPECT_THAT(error(*sum_analysis(each), {{dense(zeros({1, (1 << 20) + 1}))}}), HasSubstr("2^20"));
  EXPECT_THAT(error(*sum_analysis(), {{}}), HasSubstr("takes 1 columns, but got 0"));
  EXPECT_THROW(sum_analysis({.dtype = boolean})->start(folder.context()), InvalidArgumentError);
}

TEST(Pieces, AreRefusedWhereTheyAreDamagedOrOfAnotherAnalysis) {
  AnalysisFolder folder;
  const auto accumulator = sum_analysis()->start(folder.context());
  const ColumnBatch column = dense(of_vector(std::vector<float>{1, 2.5, 1e30F}));
  accumulator->add({&column, 1});
  const std::string piece = accumulator->save()->next().value();
  for (size_t i = 0; i < piece.size(); ++i) {
    std::string damaged = piece;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    EXPECT_THROW(sum_analysis()->start(folder.context())->add_saved(damaged, "f"), DataLossError);
    EXPECT_THROW(sum_analysis()->start(folder.context())->add_saved(piece.substr(0, i), "f"),
                 DataLossError);
  }
  const auto other = min_and_max_analysis()->start(folder.context());
  expect_error<DataLossError>([&] { other->add_saved(piece, "the file 'x'"); }, "another analysis");
  expect_error<InvalidArgumentError>([&] { other->merge(*accumulator); }, "cannot be merged");
}

}  // namespace
}  // namespace cohort::internal
