#include "cohort/keras/layers/dot.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/keras/testing_keras.h"

namespace cohort::keras::layers {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

TEST(Dot, SumsProductsOfEachExample) {
  const Structure two = tuple(numbers({1, 2, 3, 4}, {2, 2}), numbers({5, 6, 7, 8}, {2, 2}));
  const Tensor products = Dot(1)(two).tensor();
  EXPECT_THAT(products.sizes(), ElementsAre(2, 1));
  EXPECT_THAT(elements(products), ElementsAre(17, 53));
  EXPECT_THAT(elements(Dot(-1)(two).tensor()), ElementsAre(17, 53));
}

TEST(Dot, MultipliesMatrices) {
  const Tensor a = numbers({1, 2, 3, 4}, {1, 2, 2});
  const Tensor b = numbers({5, 6, 7, 8}, {1, 2, 2});
  EXPECT_THAT(elements(Dot({2, 1})(tuple(a, b)).tensor()), ElementsAre(19, 22, 43, 50));
  EXPECT_THAT(Dot({1, 2})(tuple(at::ones({3, 4, 5}), at::ones({3, 6, 4}))).tensor().sizes(),
              ElementsAre(3, 5, 6));
}

TEST(Dot, OfUnitVectorsIsTheCosine) {
  const Structure two = tuple(numbers({3, 4}, {1, 2}), numbers({4, 3}, {1, 2}));
  EXPECT_THAT(elements(Dot(1, {.normalize = true})(two).tensor()),
              Pointwise(DoubleNear(1e-6), {0.96}));
}

TEST(Dot, SaysWhatDoesNotFit) {
  const auto refused = [](const LayerHandle& layer, const Structure& inputs) {
    return thrown<InvalidArgumentError>([&] { layer(inputs); });
  };
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Dot(0); }), HasSubstr("axis 0 is the batch"));
  const Dot dot(1, {.name = "product"});
  EXPECT_THAT(refused(dot, tuple(at::ones({2, 3}), at::ones({2, 4}))),
              AllOf(HasSubstr("'product'"), HasSubstr("[2,4]")));
  EXPECT_THAT(refused(dot, tuple(at::ones({2, 3}), at::ones({3, 3}))), HasSubstr("[3,3]"));
  EXPECT_THAT(refused(dot, at::ones({2, 3})), HasSubstr("2 tensors"));
  EXPECT_THAT(refused(Dot(2), tuple(at::ones({2, 3}), at::ones({2, 3}))), HasSubstr("axis 2"));
}

}  // namespace
}  // namespace cohort::keras::layers
