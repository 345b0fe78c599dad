#include "cohort/keras/layers/lookup/integer_lookup.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/lookup/testing_text_file.h"

namespace cohort::keras::layers {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor longs(const std::vector<int64_t>& values) {
  return at::tensor(values, at::dtype(at::kLong));
}

std::vector<double> lookup(const IntegerLookup& layer, const std::vector<int64_t>& values) {
  return elements(layer(longs(values)));
}

TEST(IntegerLookup, GivesIndices) {
  const IntegerLookup layer({.vocabulary = {12, -5, 1138}, .mask_token = 0});
  EXPECT_THAT(lookup(layer, {-5, 0, 7, 1138, 12}), ElementsAre(3, 0, 1, 4, 2));
  EXPECT_THAT(layer.get_vocabulary(), ElementsAre(0, -1, 12, -5, 1138));
  EXPECT_THAT(layer(longs({12}).view({1, 1, 1})).sizes(), ElementsAre(1, 1, 1));
  EXPECT_EQ(layer.name().substr(0, 14), "integer_lookup");
}

TEST(IntegerLookup, SeveralIndicesForOutOfVocabularyAreTheFloorModulo) {
  const IntegerLookup layer({.vocabulary = {3, 4}, .num_oov_indices = 3});
  EXPECT_THAT(lookup(layer, {-7, -1, 5, 3, 8, std::numeric_limits<int64_t>::min()}),
              ElementsAre(2, 2, 2, 3, 2, 1));
}

TEST(IntegerLookup, Inverts) {
  const IntegerLookup layer({.vocabulary = {10, 20}, .invert = true});
  EXPECT_THAT(lookup(layer, {0, 1, 2, 3, -1}), ElementsAre(-1, 10, 20, -1, -1));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                IntegerLookup({.vocabulary = {10, -1}, .invert = true});
              }),
              HasSubstr("OOV token -1"));
}

TEST(IntegerLookup, ReadsFiles) {
  const TextFile file("12\n -5 \r\n1138");
  EXPECT_THAT(IntegerLookup({.vocabulary = file.path()}).get_vocabulary(false),
              ElementsAre(12, -5, 1138));
  const TextFile word("12\nx\n");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { IntegerLookup({.vocabulary = word.path()}); }),
              AllOf(HasSubstr("line 2 (byte offset 3)"), HasSubstr("'x'")));
  const TextFile twice("1\n2\n01\n");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { IntegerLookup({.vocabulary = twice.path()}); }),
              AllOf(HasSubstr("line 1"), HasSubstr("line 3")));
}

TEST(IntegerLookup, TakesAnyIntegers) {
  const IntegerLookup layer({.vocabulary = at::tensor({7, 8}, at::dtype(at::kInt))});
  EXPECT_THAT(elements(layer(at::tensor({8, 9}, at::dtype(at::kInt)))), ElementsAre(2, 0));
  EXPECT_THAT(elements(layer(at::tensor({8.0, 7.9}))), ElementsAre(2, 1));
  EXPECT_THAT(elements(layer(longs({7, 8, 9, 8}).view({2, 2}).t())), ElementsAre(1, 0, 2, 2));
  EXPECT_THROW(layer(Structure(StringTensor({"7"}))), InvalidArgumentError);
  EXPECT_THROW(IntegerLookup({.vocabulary = at::tensor({0.5})}), InvalidArgumentError);
}

TEST(IntegerLookup, Adapts) {
  const IntegerLookup layer;
  layer.adapt(longs({1, 5, 5, -1, -1, 3}));
  EXPECT_THAT(layer.get_vocabulary(), ElementsAre(-1, 5, 3, 1));
  layer.adapt(data::Dataset::range(3).concatenate(data::Dataset::range(2)).batch(2));
  EXPECT_THAT(layer.get_vocabulary(), ElementsAre(-1, 1, 0, 2));
}

TEST(IntegerLookup, Encodes) {
  const IntegerLookup layer(
      {.vocabulary = {3, 4}, .num_oov_indices = 0, .mask_token = 0, .output_mode = "multi_hot"});
  EXPECT_THAT(elements(layer(longs({3, 0, 4, 4}).view({2, 2}))), ElementsAre(1, 0, 0, 1));
  EXPECT_THROW(layer(longs({5})), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::keras::layers
