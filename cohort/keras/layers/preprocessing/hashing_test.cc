#include "cohort/keras/layers/preprocessing/hashing.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/keras/layers/preprocessing/hashed_crossing.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras::layers {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> outputs(const LayerHandle& layer, const Structure& inputs) {
  return elements(layer(inputs).tensor());
}

Structure letters() { return StringTensor({"A", "B", "C", "D", "E"}, {5, 1}); }
Tensor integers(const std::vector<double>& values) {
  return numbers(values, {static_cast<int64_t>(values.size())}, int64);
}

// The examples of Keras's documentation.
TEST(Hashing, GivesTheBinsOfKeras) {
  EXPECT_THAT(outputs(Hashing(3), letters()), ElementsAre(1, 0, 1, 1, 2));
  EXPECT_THAT(outputs(Hashing(3, {.mask_value = ""}), StringTensor({"A", "B", "", "C", "D"})),
              ElementsAre(1, 1, 0, 2, 2));
  EXPECT_THAT(outputs(Hashing(3, {.salt = {133, 137}}), letters()), ElementsAre(1, 2, 1, 0, 2));
  EXPECT_THAT(outputs(Hashing(3, {.salt = 133}), letters()), ElementsAre(0, 0, 2, 1, 0));
}

TEST(Hashing, OfIntegersIsThatOfTheirDigits) {
  EXPECT_THAT(outputs(Hashing(3), integers({1, -2})), ElementsAre(0, 1));
  EXPECT_THAT(outputs(Hashing(3, {.mask_value = 1}), integers({1, -2})), ElementsAre(0, 2));
  const std::vector<int64_t> extremes = {std::numeric_limits<int64_t>::min(),
                                         std::numeric_limits<int64_t>::max()};
  const Hashing layer(1000);
  EXPECT_EQ(outputs(layer, at::tensor(extremes, at::dtype(at::kLong))),
            outputs(layer, StringTensor({"-9223372036854775808", "9223372036854775807"})));
  EXPECT_EQ(outputs(layer, numbers({1, 200}, {2}, at::kByte)),
            outputs(layer, StringTensor({"1", "200"})));
}

TEST(Hashing, KeepsShapesAndMakesVectors) {
  EXPECT_THAT(Hashing(3)(letters()).tensor().sizes(), ElementsAre(5, 1));
  EXPECT_THAT(outputs(Hashing(3), StringTensor::scalar("E")), ElementsAre(2));
  EXPECT_EQ(Hashing(3)(letters()).tensor().scalar_type(), int64);
  EXPECT_EQ(Hashing(3, {.dtype = int32})(letters()).tensor().scalar_type(), int32);
  const Structure hot = Hashing(3, {.output_mode = "one_hot"})(letters());
  EXPECT_THAT(hot.tensor().sizes(), ElementsAre(5, 3));
  EXPECT_THAT(elements(hot.tensor().argmax(1)), ElementsAre(1, 0, 1, 1, 2));
  const StringTensor row({"A", "B", "C", "D", "E"}, {1, 5});
  EXPECT_THAT(outputs(Hashing(3, {.output_mode = "multi_hot"}), row), ElementsAre(1, 1, 1));
  const Structure counts = Hashing(3, {.output_mode = "count", .dtype = int64})(Structure(row));
  EXPECT_EQ(counts.tensor().scalar_type(), int64);
  EXPECT_THAT(elements(counts.tensor()), ElementsAre(1, 3, 1));
}

TEST(Hashing, OfNothing) {
  EXPECT_THAT(Hashing(3)(at::empty({2, 0}, int64)).sizes(), ElementsAre(2, 0));
  const Hashing counts(3, {.output_mode = "count"});
  EXPECT_THAT(counts(at::empty({0, 3}, int64)).sizes(), ElementsAre(0, 3));
  EXPECT_THAT(outputs(counts, at::empty({2, 0}, int64)), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(Hashing, TheOnlyBinIsThatOfEverything) {
  EXPECT_THAT(outputs(Hashing(1, {.mask_value = 1}), integers({1, 2, 3})), Each(0));
}

TEST(Hashing, OfRaggedTensors) {
  const Structure ragged = RaggedTensor::from_row_lengths(integers({1, 2, 3}), {2, 0, 1});
  const RaggedTensor bins = Hashing(3)(ragged);
  EXPECT_THAT(elements(bins.values()), ElementsAre(0, 1, 0));
  EXPECT_THAT(elements(bins.row_splits()), ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(outputs(Hashing(3, {.output_mode = "multi_hot"}), ragged),
              ElementsAre(1, 1, 0, 0, 0, 0, 1, 0, 0));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { Hashing(3, {.output_mode = "one_hot"})(ragged); }),
              HasSubstr("more than two dimensions"));
}

TEST(Hashing, RefusesWhatIsWrong) {
  const auto refused = [](int64_t num_bins, const HashingOptions& options) {
    return thrown<InvalidArgumentError>([&] { Hashing(num_bins, options); });
  };
  EXPECT_THAT(refused(0, {.name = "h"}), AllOf(HasSubstr("'h'"), HasSubstr("num_bins is 0")));
  EXPECT_THAT(refused(3, {.output_mode = "tf_idf"}),
              HasSubstr("'int', 'one_hot', 'multi_hot' and 'count'"));
  EXPECT_THAT(refused(3, {.dtype = float32}), HasSubstr("float32"));
  const auto failed = [](const HashingOptions& options, const Structure& input) {
    return thrown<InvalidArgumentError>([&] { Hashing(3, options)(input); });
  };
  EXPECT_THAT(failed({}, at::ones({2})), HasSubstr("strings or integers, but got float32 [2]"));
  EXPECT_THAT(failed({}, at::ones({2}, at::kBool)), HasSubstr("bool"));
  EXPECT_THAT(failed({.mask_value = ""}, integers({1})), HasSubstr("mask_value is a string"));
  EXPECT_THAT(failed({.mask_value = 1}, letters()), HasSubstr("mask_value is an integer"));
  EXPECT_THAT(failed({}, tuple(letters(), letters())), HasSubstr("one leaf"));
}

// ---- crosses ------------------------------------------------------------------------------------

TEST(HashedCrossing, GivesTheBinsOfKeras) {
  const StringTensor words({"A", "B", "A", "B", "A"});
  const Structure inputs = tuple(words, integers({101, 101, 101, 102, 102}));
  EXPECT_THAT(outputs(HashedCrossing(5), inputs), ElementsAre(1, 4, 1, 1, 3));
  const Structure hot = HashedCrossing(5, {.output_mode = "one_hot"})(inputs);
  EXPECT_THAT(hot.tensor().sizes(), ElementsAre(5, 5));
  EXPECT_THAT(elements(hot.tensor().argmax(1)), ElementsAre(1, 4, 1, 1, 3));
  const Structure three = tuple(StringTensor({"x", "y", ""}), integers({101, -1, 0}),
                                StringTensor({"long text of more than sixteen", "b", "c"}));
  const Tensor bins = HashedCrossing(int64_t{1} << 62)(three).tensor();
  EXPECT_EQ(bins[0].item<int64_t>(), 3500310132019133840);
  EXPECT_EQ(bins[1].item<int64_t>(), 462393556090491825);
  EXPECT_EQ(bins[2].item<int64_t>(), 3667613577703975307);
}

TEST(HashedCrossing, KeepsShapes) {
  const HashedCrossing layer(5);
  const auto crossed = [&](std::vector<int64_t> shape) {
    const StringTensor word = StringTensor({"A"}).reshape(shape);
    return layer(tuple(word, numbers({101}, shape, int32))).tensor();
  };
  EXPECT_THAT(crossed({}).sizes(), ElementsAre());
  EXPECT_THAT(crossed({1}).sizes(), ElementsAre(1));
  EXPECT_THAT(crossed({1, 1}).sizes(), ElementsAre(1, 1));
  EXPECT_THAT(elements(crossed({1, 1})), ElementsAre(1));
  const Tensor none = at::empty({0, 1}, int64);
  EXPECT_THAT(layer(tuple(none, none)).tensor().sizes(), ElementsAre(0, 1));
}

TEST(HashedCrossing, RefusesWhatIsWrong) {
  EXPECT_THROW(HashedCrossing(0), InvalidArgumentError);
  EXPECT_THAT(thrown<InvalidArgumentError>([] { HashedCrossing(5, {.output_mode = "multi_hot"}); }),
              HasSubstr("it is one of 'int' and 'one_hot'"));
  const auto failed = [](const Structure& inputs) {
    return thrown<InvalidArgumentError>([&] { HashedCrossing(5)(inputs); });
  };
  const Tensor one = integers({1});
  EXPECT_THAT(failed(one), HasSubstr("a tuple of two inputs or more, but got int64 [1]"));
  EXPECT_THAT(failed(Structure::make_tuple({one})), HasSubstr("two inputs or more"));
  EXPECT_THAT(failed(dict({{"a", one}, {"b", one}})), HasSubstr("a tuple"));
  EXPECT_THAT(failed(tuple(one, integers({1, 2}))), HasSubstr("of one shape"));
  const Tensor wide = numbers({1, 2}, {1, 2}, int64);
  EXPECT_THAT(failed(tuple(wide, wide)), HasSubstr("[n, 1]"));
  EXPECT_THAT(failed(tuple(one, at::ones({1}))), HasSubstr("float32"));
  const Structure ragged = RaggedTensor::from_row_lengths(one, {1});
  EXPECT_THAT(failed(tuple(ragged, ragged)), HasSubstr("dense"));
}

}  // namespace
}  // namespace cohort::keras::layers
