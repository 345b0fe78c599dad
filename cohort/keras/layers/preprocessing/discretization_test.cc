#include "cohort/keras/layers/preprocessing/discretization.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/testing_folder.h"
#include "cohort/data/dataset.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras::layers {
namespace {

using data::Dataset;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Discretization, FindsTheBinOfEachNumber) {
  const Discretization layer({.bin_boundaries = {0, 1, 2}});
  const Tensor bins = layer(numbers({-1.5, 1, 3.4, .5, 0, 3, 1.3, 0}, {2, 4}));
  EXPECT_EQ(bins.scalar_type(), int64);
  EXPECT_THAT(bins.sizes(), ElementsAre(2, 4));
  EXPECT_THAT(elements(bins), ElementsAre(0, 2, 3, 1, 1, 3, 2, 1));
  EXPECT_THAT(elements(layer(numbers({0, 1, 5}, {3}, at::kByte))), ElementsAre(1, 2, 3));
  EXPECT_THAT(elements(layer(at::empty({0, 3}))), IsEmpty());
}

TEST(Discretization, OfWhatIsNoUsualNumber) {
  const Discretization layer({.bin_boundaries = {0, 1, 2}});
  EXPECT_THAT(elements(layer(numbers({kNan, kInf, -kInf, -0., 1e-45}))),
              ElementsAre(3, 3, 0, 1, 1));
  const Discretization endless({.bin_boundaries = {-kInf, 1, kInf}});
  EXPECT_THAT(elements(endless(numbers({-kInf, 0, 1, kInf}))), ElementsAre(1, 1, 2, 3));
}

// Boundaries are float32; float64 is compared with that, but cast where vectors are floating.
TEST(Discretization, ComparesAsKeras) {
  EXPECT_THAT(elements(Discretization({.bin_boundaries = {0.1}})(numbers({0.1}, {1}, float64))),
              ElementsAre(0));
  EXPECT_THAT(elements(Discretization({.bin_boundaries = {0.1}})(numbers({0.1}))), ElementsAre(1));
  const Discretization count({.bin_boundaries = {1 + 1e-9}, .output_mode = "count"});
  EXPECT_THAT(elements(count(numbers({1, 1 + 2e-9}, {2}, float64))), ElementsAre(0, 2));
  EXPECT_THAT(elements(Discretization({.bin_boundaries = {16777217}})(
                  numbers({16777217, 16777216}, {2}, int64))),
              ElementsAre(1, 1));
}

TEST(Discretization, MakesVectors) {
  const Tensor x = numbers({-1, 5, 6, 0.5}, {2, 2});
  const auto made = [&](const std::string& mode, const Tensor& input) {
    return elements(Discretization({.bin_boundaries = {0, 1}, .output_mode = mode})(input));
  };
  EXPECT_THAT(made("count", x), ElementsAre(1, 0, 1, 0, 1, 1));
  EXPECT_THAT(made("multi_hot", numbers({5, 6}, {1, 2})), ElementsAre(0, 0, 1));
  EXPECT_THAT(made("one_hot", numbers({5, -6})), ElementsAre(0, 0, 1, 1, 0, 0));
}

TEST(Discretization, OfRaggedTensors) {
  const Structure rows = RaggedTensor::from_row_lengths(numbers({1, 2, 0}), {2, 1});
  const RaggedTensor bins = Discretization({.bin_boundaries = {1}})(rows);
  EXPECT_THAT(elements(bins.values()), ElementsAre(1, 1, 0));
  const Discretization count({.bin_boundaries = {1}, .output_mode = "count"});
  EXPECT_THAT(elements(count(rows).tensor()), ElementsAre(0, 2, 1, 0));
}

// Numbers of Keras 2.15.
TEST(Discretization, LearnsWhatKerasLearns) {
  const Discretization few({.num_bins = 4});
  const Tensor x = numbers({-1.5, 1, 3.4, .5, 0, 3, 1.3, 0}, {2, 4});
  few.adapt(x);
  EXPECT_THAT(few.bin_boundaries(), ElementsAre(0, 0.5, 1.2999999523162842));
  EXPECT_THAT(elements(few(x)), ElementsAre(0, 2, 3, 2, 1, 3, 3, 1));
  const Discretization coarse({.num_bins = 4, .epsilon = 0.1});
  const auto expected = ElementsAre(23.63333511352539, 49.000003814697266, 74.5);
  coarse.adapt(at::arange(100));
  EXPECT_THAT(coarse.bin_boundaries(), expected);
  coarse.adapt(Dataset::from_tensor_slices(at::arange(100)).batch(32));
  EXPECT_THAT(coarse.bin_boundaries(), expected);
  const Discretization thirds({.num_bins = 3});
  for (const Dataset& dataset : {Dataset::from_tensor_slices(at::arange(50)),
                                 Dataset::from_tensor_slices(at::arange(50)).batch(7)}) {
    thirds.adapt(dataset);
    EXPECT_THAT(thirds.bin_boundaries(), ElementsAre(15.666666984558105, 32.33333206176758));
  }
}

TEST(Discretization, AdaptForgetsWhatItLearnedBefore) {
  const Discretization layer({.num_bins = 3});
  layer.adapt(at::arange(100));
  layer.adapt(at::arange(10));
  EXPECT_THAT(layer.bin_boundaries(), ElementsAre(2.3333332538604736, 5.666666507720947));
  layer.adapt(Dataset::from_tensor_slices(at::arange(100)).batch(5).repeat(), {.steps = 2});
  EXPECT_THAT(layer.bin_boundaries(), ElementsAre(2.3333332538604736, 5.666666507720947));
}

TEST(Discretization, AFailedAdaptChangesNothing) {
  const Discretization layer({.num_bins = 2, .name = "d"});
  layer.adapt(numbers({1, 2, 3, 4, 5}));
  const auto refused = [&](const auto& data) {
    return thrown<InvalidArgumentError>([&] { layer.adapt(data); });
  };
  EXPECT_THAT(refused(numbers({1, kNan})), AllOf(HasSubstr("'d'"), HasSubstr("NaN")));
  EXPECT_THAT(refused(numbers({})), HasSubstr("no data"));
  EXPECT_THAT(refused(Dataset::from_tensor_slices(StringTensor({"a"}))),
              HasSubstr("takes numbers, but got string"));
  EXPECT_THAT(refused(at::ones({2}, at::kBool)), HasSubstr("bool"));
  EXPECT_THAT(refused(Dataset::from_tensors(at::ones({2})).repeat()), HasSubstr(".steps"));
  EXPECT_THAT(refused(Dataset::from_tensors(tuple(at::ones({2}), at::ones({2})))),
              HasSubstr("one leaf"));
  EXPECT_THAT(layer.bin_boundaries(), ElementsAre(2.5));
}

TEST(Discretization, OfInfinitiesOfOneSignLearns) {
  const Discretization layer({.num_bins = 2});
  layer.adapt(numbers({1, 2, kInf}));
  EXPECT_THAT(layer.bin_boundaries(), Each(testing::Gt(0)));
  const Discretization torn({.num_bins = 2, .epsilon = 0.3});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                torn.adapt(numbers({-kInf, -kInf, kInf, kInf, kInf}));
              }),
              HasSubstr("infinities"));
}

TEST(Discretization, RefusesWhatIsWrong) {
  const auto refused = [](DiscretizationOptions options) {
    return thrown<InvalidArgumentError>([&] { Discretization layer(std::move(options)); });
  };
  EXPECT_THAT(refused({}), HasSubstr("give bin_boundaries, or num_bins"));
  EXPECT_THAT(refused({.bin_boundaries = {1}, .num_bins = 2}), HasSubstr("one of both"));
  EXPECT_THAT(refused({.bin_boundaries = {1, 3, 2}}), HasSubstr("at index 2 2 follows 3"));
  EXPECT_THAT(refused({.bin_boundaries = {1, kNan}}), HasSubstr("bin_boundaries[1]"));
  for (const int64_t bins : {0, -1})
    EXPECT_THAT(refused({.num_bins = bins}), HasSubstr("num_bins"));
  for (const double epsilon : {0., -1., 1., 2., kNan}) {
    EXPECT_THAT(refused({.num_bins = 2, .epsilon = epsilon}), HasSubstr("epsilon"));
  }
  EXPECT_THAT(refused({.num_bins = 2, .output_mode = "tf_idf"}), HasSubstr("'count'"));
  const Discretization given({.bin_boundaries = {1}});
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { given.adapt(at::ones({2})); }),
              HasSubstr("bin_boundaries"));
  EXPECT_THROW(given(Structure(StringTensor({"a"}))), InvalidArgumentError);
  const Discretization unlearned({.num_bins = 2});
  EXPECT_THAT(unlearned.bin_boundaries(), IsEmpty());
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { unlearned(at::ones({2})); }),
              HasSubstr("adapt"));
}

TEST(Discretization, KeepsTheNumberOfItsColumns) {
  const Discretization layer({.num_bins = 4, .output_mode = "one_hot"});
  layer.adapt(at::arange(100));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] {
                layer.adapt(numbers({1, 2}));
              }),
              HasSubstr("4 columns"));
  EXPECT_EQ(layer.bin_boundaries().size(), 3u);
}

TEST(Discretization, IsPartOfACheckpoint) {
  const internal::TemporaryFolder folder;
  const Discretization layer({.num_bins = 4, .epsilon = 0.1});
  const std::string empty = train::Checkpoint({{"layer", layer}}).save(folder / "empty");
  layer.adapt(at::arange(100));
  const std::string path = train::Checkpoint({{"layer", layer}}).save(folder / "learned");
  const Discretization restored({.num_bins = 4, .epsilon = 0.1});
  train::Checkpoint checkpoint({{"layer", restored}});
  checkpoint.restore(path).assert_consumed();
  EXPECT_EQ(restored.bin_boundaries(), layer.bin_boundaries());
  checkpoint.restore(empty).assert_consumed();
  EXPECT_THAT(restored.bin_boundaries(), IsEmpty());
  // What was given is not in it.
  const Discretization given({.bin_boundaries = {1}});
  train::Checkpoint({{"layer", given}}).restore(path).assert_existing_objects_matched();
  EXPECT_THAT(given.bin_boundaries(), ElementsAre(1));
}

}  // namespace
}  // namespace cohort::keras::layers
