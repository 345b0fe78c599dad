#include "cohort/keras/layers/fusion.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing_errors.h"
#include "cohort/keras/layers/layers.h"
#include "cohort/keras/sequential.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::layers {
namespace {

using ::testing::HasSubstr;

// Few distinct ids, which come again, and so many that the rows themselves are looked up.
TEST(Fusion, OfAnEmbeddingAndTheMeanOfItsRows) {
  for (const int64_t rows : {5, 1000}) {
    const std::vector<LayerHandle> layers{Embedding(rows, 4, {.dtype = float64}),
                                          GlobalAveragePooling1D()};
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

}  // namespace
}  // namespace cohort::keras::layers
