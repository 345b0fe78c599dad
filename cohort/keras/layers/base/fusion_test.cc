#include "cohort/keras/layers/base/fusion.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing_errors.h"
#include "cohort/keras/layers/layers.h"
#include "cohort/keras/model/sequential.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::layers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Few distinct ids, which come again, and so many that the rows themselves are looked up.
TEST(Fusion, OfAnEmbeddingAndTheMeanOfItsRows) {
  for (const int64_t rows : {5, 1000}) {
    const std::vector<LayerHandle> layers{Embedding(rows, 4, {.dtype = float64}),
                                          GlobalAveragePooling1D({.dtype = float64})};
    const Sequential model(layers);
    const Tensor ids = at::randint(rows, {6, 3}, int64);
    GradientTape tape({.persistent = true});
    const Tensor together = model(ids);
    const Tensor apart = layers[1](layers[0](ids));
    EXPECT_TRUE(at::allclose(together, apart, 1e-5, 1e-6));
    const auto gradient = [&](const Tensor& means) {
      return tape.gradient((means * means).sum(), model.trainable_variables())[0].to_dense();
    };
    EXPECT_TRUE(at::allclose(gradient(together), gradient(apart), 1e-5, 1e-6));
    EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                  model(at::full({2, 3}, rows, int64));
                }),
                HasSubstr("is outside [0, "));
  }
}

// One unit, whose kernel the distinct rows are multiplied by, and so many that the means are.
TEST(Fusion, OfAnEmbeddingTheMeanOfItsRowsAndADenseLayer) {
  for (const int64_t rows : {5, 1000}) {
    for (const int64_t units : {1, 200}) {
      const std::vector<LayerHandle> layers{
          Embedding(rows, 24, {.dtype = float64}), GlobalAveragePooling1D({.dtype = float64}),
          Dense(units,
                {.activation = "tanh", .bias_initializer = "random_normal", .dtype = float64})};
      const Sequential model(layers);
      const Tensor ids = at::randint(rows, {6, 3}, int64);
      GradientTape tape({.persistent = true});
      const Tensor together = model(ids);
      const Tensor apart = layers[2](layers[1](layers[0](ids)));
      EXPECT_TRUE(at::allclose(together, apart, 1e-9, 1e-9));
      const auto gradients = [&](const Tensor& outputs) {
        return tape.gradient((outputs * outputs).sum(), model.trainable_variables());
      };
      const auto ours = gradients(together), theirs = gradients(apart);
      EXPECT_TRUE(at::allclose(ours[0].to_dense(), theirs[0].to_dense(), 1e-9, 1e-9));
      EXPECT_TRUE(at::allclose(ours[1], theirs[1], 1e-9, 1e-9));
      EXPECT_TRUE(at::allclose(ours[2], theirs[2], 1e-9, 1e-9));
      EXPECT_THAT(*layers[1].get()->output_spec()->leaf().shape(), ElementsAre(-1, 24));
    }
  }
}

// What the fused layers are built and checked by are tensors of the right form.
TEST(Fusion, OfAnEmbeddingItsMeanAndADenseLayerKeepsErrorsAndLosses) {
  const Sequential model({Embedding(4, 3), GlobalAveragePooling1D(),
                          Dense(1, {.kernel_initializer = "ones", .activity_regularizer = "l2"})});
  const Tensor ids = at::randint(4, {2, 5}, int64);
  const Tensor outputs = model(ids);
  ASSERT_EQ(model.losses().size(), 1u);
  EXPECT_TRUE(at::allclose(model.losses()[0], 0.01 * (outputs * outputs).sum() / 2));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(at::full({2, 3}, 4, int64));
              }),
              HasSubstr("is outside [0, "));
}

}  // namespace
}  // namespace cohort::keras::layers
