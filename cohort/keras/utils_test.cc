#include "cohort/keras/utils.h"

#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/random.h"

namespace cohort::keras::utils {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SetRandomSeed, SeedsCohortsNumbersAndLibtorchs) {
  const auto before = random::get_seed();
  const auto draw = [] {
    set_random_seed(7);
    return std::pair(random::uniform({3}), at::rand({3}));
  };
  const auto [own, torchs] = draw();
  const auto [own_again, torchs_again] = draw();
  EXPECT_TRUE(own.equal(own_again));
  EXPECT_TRUE(torchs.equal(torchs_again));
  EXPECT_FALSE(at::rand({3}).equal(torchs));
  random::set_seed(before.value_or(0));
}

TEST(ToCategorical, IsOneHot) {
  const Tensor one_hot = to_categorical(numbers({2, 0, 1}));
  EXPECT_EQ(one_hot.scalar_type(), float32);
  EXPECT_THAT(one_hot.sizes(), ElementsAre(3, 3));
  EXPECT_THAT(elements(one_hot), ElementsAre(0, 0, 1, 1, 0, 0, 0, 1, 0));
  EXPECT_THAT(to_categorical(numbers({2, 0}, {2, 1}).to(int64), 4).sizes(), ElementsAre(2, 4));
  EXPECT_THAT(to_categorical(numbers({0, 1, 1, 0}, {2, 2})).sizes(), ElementsAre(2, 2, 2));
  EXPECT_THAT(to_categorical(at::zeros({0}), 4).sizes(), ElementsAre(0, 4));
}

TEST(ToCategorical, NamesWhatIsNoClass) {
  const auto refused = [](const Tensor& classes, std::optional<int64_t> count = std::nullopt) {
    return thrown<InvalidArgumentError>([&] { to_categorical(classes, count); });
  };
  EXPECT_THAT(refused(numbers({0, 3}), 3), AllOf(HasSubstr("element 1"), HasSubstr("class 3")));
  EXPECT_THAT(refused(numbers({0, -1})), HasSubstr("class -1"));
  EXPECT_THAT(refused(numbers({0.5})), HasSubstr("fractions"));
  EXPECT_THAT(refused(at::zeros({0})), HasSubstr("num_classes"));
  EXPECT_THAT(refused(at::zeros({0}), -3), HasSubstr("num_classes is -3"));
  EXPECT_THROW(to_categorical(Tensor()), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::keras::utils
