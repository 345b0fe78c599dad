#include "cohort/transform/graph/operations.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/testing_errors.h"
#include "cohort/transform/functions/column_functions.h"
#include "cohort/transform/functions/mappers.h"
#include "cohort/transform/testing_columns.h"

namespace cohort::transform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// One output of a function of one column.
Structure result_of(const Structure& x, const std::function<Column(const Column&)>& function) {
  return transformed(dict({{"x", x}}), [&](const Columns& in) {
    return Columns{{"y", function(in["x"])}};
  })["y"];
}

std::string error_of(const Structure& x, const std::function<Column(const Column&)>& function) {
  return thrown<InvalidArgumentError>([&] { result_of(x, function); });
}

Structure ragged(const StringTensor& values, std::vector<int64_t> lengths) {
  return RaggedTensor::from_row_lengths(Leaf(values), lengths);
}

TEST(TransformOperations, NumbersTakeTheDtypeOfTheColumn) {
  const Structure y = result_of(at::tensor({1.F, 2.F}), [](const Column& x) { return x * 2 + .5; });
  EXPECT_EQ(y.tensor().scalar_type(), float32);
  EXPECT_THAT(numbers(y), ElementsAre(2.5, 4.5));
  const Structure n = result_of(at::arange(2), [](const Column& x) { return x * 2 - 1; });
  EXPECT_EQ(n.tensor().scalar_type(), int64);
  EXPECT_EQ(result_of(at::arange(2), [](const Column& x) { return x / 2; }).tensor().scalar_type(),
            float32);
}

TEST(TransformOperations, ColumnsOfOtherRanksAreNotBroadcast) {
  const Structure columns =
      dict({{"a", at::tensor({1.F, 2.F})}, {"b", at::tensor({1.F, 2.F}).unsqueeze(1)}});
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] {
        transformed(columns, [](const Columns& in) { return Columns{{"y", in["a"] + in["b"]}}; });
      }),
      HasSubstr("transform::add: columns with different numbers of dimensions"));
}

TEST(TransformOperations, WhereTakesNumbersOnBothSides) {
  const Structure x = at::tensor({1.F, 3.F});
  const Structure y = result_of(x, [](const Column& c) { return where(c > 2, 1.0, 0.0); });
  EXPECT_EQ(y.tensor().scalar_type(), float32);
  EXPECT_THAT(numbers(y), ElementsAre(0, 1));
  const Structure n = result_of(x, [](const Column& c) { return where(c > 2, 1, 0); });
  EXPECT_EQ(n.tensor().scalar_type(), int64);
  EXPECT_THAT(numbers(result_of(x, [](const Column& c) { return where(c > 2, c, 0.5); })),
              ElementsAre(.5, 3));
}

TEST(TransformOperations, ScaleFloat16) {
  const Structure y = result_of(at::tensor({1.F, 3.F}).to(at::kHalf),
                                [](const Column& c) { return scale_to_z_score(c); });
  EXPECT_EQ(y.tensor().scalar_type(), at::kHalf);
  EXPECT_THAT(numbers(Structure(y.tensor().to(float32))), ElementsAre(-1, 1));
}

TEST(TransformOperations, CompareTexts) {
  const StringTensor x({"a", "b", ""});
  EXPECT_THAT(numbers(result_of(x, [](const Column& c) { return c == "b"; })),
              ElementsAre(0, 1, 0));
  EXPECT_THAT(numbers(result_of(x, [](const Column& c) { return c != "b"; })),
              ElementsAre(1, 0, 1));
  EXPECT_THAT(error_of(x, [](const Column& c) { return c == 1; }), HasSubstr("never equal"));
}

TEST(TransformOperations, ChangeTexts) {
  const StringTensor x({" One  two ", "", "x"});
  EXPECT_THAT(texts(result_of(x, [](const Column& c) { return upper(strip(c)); }).leaf()),
              ElementsAre("ONE  TWO", "", "X"));
  EXPECT_THAT(text_rows(result_of(x, [](const Column& c) { return split(lower(c)); })),
              ElementsAre(ElementsAre("one", "two"), IsEmpty(), ElementsAre("x")));
  EXPECT_THAT(text_rows(result_of(x, [](const Column& c) { return split(c, "  "); })),
              ElementsAre(ElementsAre(" One", "two "), ElementsAre(""), ElementsAre("x")));
  EXPECT_THAT(texts(result_of(x,
                              [](const Column& c) {
                                return join({c, "!"}, "-");
                              })
                        .leaf()),
              ElementsAre(" One  two -!", "-!", "x-!"));
  EXPECT_THAT(texts(result_of(x, [](const Column& c) { return replace(c, "o", "00"); }).leaf()),
              ElementsAre(" One  tw00 ", "", "x"));
  EXPECT_THAT(texts(result_of(x, [](const Column& c) { return substr(c, 1, 3); }).leaf()),
              ElementsAre("One", "", ""));
  EXPECT_THAT(numbers(result_of(x, [](const Column& c) { return string_length(c); })),
              ElementsAre(10, 0, 1));
}

TEST(TransformOperations, ReadNumbers) {
  const StringTensor x({"1.5", " -2 ", "n/a"});
  const auto y = numbers(result_of(x, [](const Column& c) {
    return to_number(c, {.default_value = std::numeric_limits<double>::quiet_NaN()});
  }));
  EXPECT_EQ(y[0], 1.5);
  EXPECT_EQ(y[1], -2);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_THAT(error_of(x, [](const Column& c) { return scale_to_0_1(to_number(c)); }),
              HasSubstr("analysis of batch 1: transform::to_number: 'n/a' is no float32"));
  EXPECT_THAT(texts(result_of(at::arange(9, 11), as_string).leaf()), ElementsAre("9", "10"));
}

TEST(TransformOperations, NGramsAndBags) {
  const Structure tokens = ragged({"a", "b", "c", "x", "x", "x"}, {3, 0, 3});
  EXPECT_THAT(text_rows(result_of(tokens,
                                  [](const Column& c) {
                                    return ngrams(c, {1, 2}, "_");
                                  })),
              ElementsAre(ElementsAre("a", "a_b", "b", "b_c", "c"), IsEmpty(),
                          ElementsAre("x", "x_x", "x", "x_x", "x")));
  EXPECT_THAT(text_rows(result_of(tokens,
                                  [](const Column& c) {
                                    return bag_of_words(c, {1, 2}, "_");
                                  })),
              ElementsAre(testing::SizeIs(5), IsEmpty(), ElementsAre("x", "x_x")));
  EXPECT_THAT(error_of(tokens,
                       [](const Column& c) {
                         return ngrams(c, {2, 1}, "");
                       }),
              HasSubstr("ngram_range"));
  EXPECT_THAT(rows(result_of(at::tensor({3, 1, 3, 2, 2, 2}, at::kLong).reshape({2, 3}),
                             deduplicate_tensor_per_row)),
              ElementsAre(ElementsAre(3, 1), ElementsAre(2)));
}

TEST(TransformOperations, HashesAreTensorFlows) {
  const StringTensor x({"a", "b", "", "hello", "\xc3\xa9"});
  EXPECT_THAT(numbers(result_of(x, [](const Column& c) { return hash_strings(c, 10); })),
              ElementsAre(9, 2, 3, 6, 5));
  EXPECT_THAT(numbers(result_of(x,
                                [](const Column& c) {
                                  return hash_strings(c, 10, {{123, 456}});
                                })),
              ElementsAre(8, 2, 4, 9, 0));
}

TEST(TransformOperations, BucketsCountTheBoundariesThatAreReached) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(numbers(result_of(at::tensor({0.F, 1.F, 1.5F, 3.F, NAN, infinity, -infinity}),
                                [](const Column& c) {
                                  return apply_buckets(c, std::vector<double>{1, 2, 3});
                                })),
              ElementsAre(0, 1, 1, 3, 3, 3, 0));
  EXPECT_THAT(numbers(result_of(at::arange(16777216, 16777219),
                                [](const Column& c) {
                                  return apply_buckets(c, std::vector<double>{16777216, 16777218});
                                })),
              ElementsAre(1, 1, 2));
  EXPECT_THAT(
      numbers(result_of(at::tensor({1.F, 10.F, 2.F, 20.F, 3.F, 30.F}).reshape({3, 2}),
                        [](const Column& c) { return bucketize(c, 3, {.elementwise = true}); })),
      ElementsAre(0, 0, 1, 1, 2, 2));
}

TEST(TransformOperations, BoundariesAscend) {
  const Structure x = at::tensor({1.F});
  const auto error = [&](const std::vector<double>& boundaries) {
    return error_of(x, [&](const Column& c) { return apply_buckets(c, boundaries); });
  };
  EXPECT_THAT(error({3, 1}), HasSubstr("boundaries ascend, but number 1 is 1 behind 3"));
  EXPECT_THAT(error({NAN}), HasSubstr("number 0 is nan"));
  EXPECT_THAT(error_of(x, [](const Column& c) { return histogram(c, 2'000'000'000).counts; }),
              HasSubstr("it takes 2 to 16777216"));
}

TEST(TransformOperations, Shapes) {
  EXPECT_THAT(
      result_of(at::arange(4), [](const Column& c) { return one_hot(c, 3); }).tensor().sizes(),
      ElementsAre(4, 3));
  EXPECT_THAT(numbers(result_of(at::tensor({1, 5}), [](const Column& c) { return one_hot(c, 2); })),
              ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(numbers(result_of(at::tensor({1.F, 2.F}),
                                [](const Column& c) {
                                  return concat({c, -c});
                                })),
              ElementsAre(1, -1, 2, -2));
  EXPECT_THAT(text_rows(result_of(StringTensor({"a", "b"}), to_ragged)),
              ElementsAre(ElementsAre("a"), ElementsAre("b")));
  EXPECT_THAT(texts(result_of(ragged({"a", "b", "c"}, {2, 0, 1}),
                              [](const Column& c) { return to_dense(c, {.text = "-", .size = 2}); })
                        .leaf()),
              ElementsAre("a", "b", "-", "-", "c", "-"));
  EXPECT_THAT(error_of(ragged({"a", "b"}, {2, 0}),
                       [](const Column& c) { return compute_and_apply_vocabulary(to_dense(c)); }),
              HasSubstr("row 0 of the batch has 2 values, but .size is 1"));
}

}  // namespace
}  // namespace cohort::transform
