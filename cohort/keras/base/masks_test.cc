#include "cohort/keras/base/masks.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/keras/layers/layers.h"
#include "cohort/keras/losses/losses.h"
#include "cohort/keras/model/functional.h"
#include "cohort/keras/model/sequential.h"
#include "cohort/keras/optimizers/optimizers.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/random.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

std::vector<double> mask_after(const layers::LayerHandle& layer, const Structure& inputs) {
  const Tensor mask = internal::mask_of(layer(inputs).tensor());
  return mask.defined() ? elements(mask) : std::vector<double>{};
}

TEST(Masks, BelongToTheTensorAsLongAsItLives) {
  const Tensor mask = at::ones({1, 2}).to(boolean);
  const Tensor values = internal::with_mask(at::ones({1, 2, 3}), mask);
  EXPECT_TRUE(internal::mask_of(values).is_same(mask));
  EXPECT_FALSE(internal::mask_of(values * 1).defined());
  for (int i = 0; i < 1000;
       ++i) {  // of tensors that are gone nothing is kept, and none is mistaken
    internal::with_mask(at::ones({1, 2, 3}), mask);
    ASSERT_FALSE(internal::mask_of(at::ones({1, 2, 3})).defined());
  }
  EXPECT_TRUE(internal::mask_of(values).is_same(mask));
}

TEST(Masks, AsManyTensorsAsLiveAreMarked) {
  const Tensor mask = at::ones({1, 2}).to(boolean);
  std::vector<Tensor> marked;
  for (int i = 0; i < 1000; ++i) {
    marked.push_back(internal::with_mask(at::ones({1, 2, 3}), mask));
  }
  for (const Tensor& values : marked) ASSERT_TRUE(internal::mask_of(values).is_same(mask));
}

TEST(Masking, MarksStepsOfOneValue) {
  const Tensor x = numbers({1, 0, 0, 0, 0, 2}, {1, 3, 2});
  EXPECT_THAT(mask_after(layers::Masking(), x), ElementsAre(1, 0, 1));
  const layers::Masking twos(2.);
  const Tensor y = numbers({2, 2, 2, 1}, {1, 2, 2});
  EXPECT_THAT(elements(twos(y)), ElementsAre(0, 0, 2, 1));
  EXPECT_THAT(mask_after(twos, y), ElementsAre(0, 1));
  EXPECT_THROW(layers::Masking()(at::ones({2, 3})), InvalidArgumentError);
}

// As what a layer before has marked; of the tensor that was given nothing is known afterwards.
TEST(Masks, CanBeGivenInACall) {
  const Tensor mask = numbers({1, 1, 0, 1, 0, 0}, {2, 3}).to(boolean);
  const Tensor x = random::normal({2, 3, 4});
  const layers::LSTM lstm(2, {.return_sequences = true});
  const layers::GlobalAveragePooling1D mean;
  lstm(x);
  const auto marked = [&] { return internal::with_mask(x.clone(), mask); };
  EXPECT_EQ(elements(lstm(x, {.mask = mask})), elements(lstm(marked())));
  EXPECT_EQ(elements(mean(x, {.mask = mask})), elements(mean(marked())));
  EXPECT_TRUE(internal::mask_of(lstm(x, {.mask = mask})).equal(mask));
  EXPECT_FALSE(internal::mask_of(x).defined());
  const Sequential model({layers::Dense(2), layers::GRU(3), layers::Dense(1)});
  model(x);
  EXPECT_EQ(elements(model(x, {.mask = mask})), elements(model(marked())));
  EXPECT_NE(elements(model(x, {.mask = mask})), elements(model(x)));
}

TEST(Masks, ThatDoNotFitAreRefused) {
  const layers::GRU gru(3, {.name = "gate"});
  const auto refused = [&](const Tensor& mask) {
    return thrown<InvalidArgumentError>([&] { gru(at::ones({2, 3, 4}), {.mask = mask}); });
  };
  EXPECT_THAT(refused(at::ones({2, 4}).to(boolean)),
              AllOf(HasSubstr("layer 'gate'"), HasSubstr("bool [2,4]"), HasSubstr("[2,3,4]")));
  EXPECT_THAT(refused(at::ones({2, 3})), HasSubstr("float32 [2,3]"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                gru(keras::Input({3, 4}), {.mask = at::ones({2, 3}).to(boolean)});
              }),
              HasSubstr("for symbols"));
}

TEST(Embedding, MarksPaddingIfAsked) {
  const Tensor ids = numbers({3, 0, 1, 0}, {2, 2}).to(int64);
  EXPECT_THAT(mask_after(layers::Embedding(4, 2, {.mask_zero = true}), ids),
              ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(mask_after(layers::Embedding(4, 2), ids), ElementsAre());
}

TEST(Masks, PassThroughLayersThatKeepTheSteps) {
  const Tensor x = numbers({1, 2, 0, 0}, {1, 2, 2});
  const auto through = [&](const layers::LayerHandle& layer) {
    return mask_after(Sequential({layers::Masking(), layer}), x);
  };
  for (const layers::LayerHandle& layer : std::vector<layers::LayerHandle>{
           layers::Dense(3), layers::Activation("relu"), layers::Dropout(0.5), layers::ReLU(),
           layers::LayerNormalization(), layers::BatchNormalization(),
           layers::GRU(2, {.return_sequences = true})}) {
    EXPECT_THAT(through(layer), ElementsAre(1, 0)) << layer.class_name();
  }
  EXPECT_THAT(through(layers::Conv1D(1, 1)), ElementsAre());
}

TEST(Masks, OfSeveralInputsCountTogether) {
  const Tensor a = layers::Masking()(numbers({1, 1, 0}, {1, 3, 1}));
  const Tensor b = layers::Masking()(numbers({1, 0, 1}, {1, 3, 1}));
  EXPECT_THAT(mask_after(layers::Add(), tuple(a, b)), ElementsAre(1, 0, 0));
  EXPECT_THAT(mask_after(layers::Subtract(), tuple(a, at::ones({1, 3, 1}))), ElementsAre(1, 1, 0));
  EXPECT_THAT(mask_after(layers::Concatenate(), tuple(a, b)), ElementsAre(1, 0, 0));
  EXPECT_THAT(mask_after(layers::Concatenate({.axis = 1}), tuple(a, b, at::ones({1, 1, 1}))),
              ElementsAre(1, 1, 0, 1, 0, 1, 1));
  const Tensor longer = layers::Masking()(numbers({0, 1, 1, 0}, {1, 4, 1}));
  EXPECT_THAT(mask_after(layers::Concatenate({.axis = 1}), tuple(a, longer)),
              ElementsAre(1, 1, 0, 0, 1, 1, 0));
}

TEST(GlobalAveragePooling1D, AveragesTheStepsThatCount) {
  const Tensor x = numbers({1, 3, 0, 0, 0, 0}, {2, 3, 1});
  const Sequential model({layers::Masking(), layers::GlobalAveragePooling1D()});
  EXPECT_THAT(elements(model(x)), ElementsAre(2, 0));
}

TEST(GlobalAveragePooling1D, AfterAnEmbeddingAveragesTheIdsThatCount) {
  const layers::Embedding embedding(3, 2, {.mask_zero = true});
  const Sequential model({embedding, layers::GlobalAveragePooling1D()});
  const Tensor ids = numbers({1, 2, 0, 0}, {1, 4}).to(int64);
  model(ids);
  model.set_weights({numbers({100, 100, 1, 2, 3, 4}, {3, 2})});
  EXPECT_THAT(elements(model(ids)), ElementsAre(2, 3));
}

TEST(MultiHeadAttention, AttendsToWhatCounts) {
  random::set_seed(1);
  const layers::MultiHeadAttention attention(2, 3);
  Tensor x = random::normal({1, 4, 5});
  const Tensor mask = numbers({1, 1, 0, 0}, {1, 4}).to(boolean);
  const auto attended = [&] { return attention(tuple(x, internal::with_mask(x.clone(), mask))); };
  const Tensor before = attended().tensor();
  x = x.clone();
  x.slice(1, 0, 2).copy_(before.new_ones({1, 2, 5}));
  const Tensor changed = attended().tensor();
  EXPECT_FALSE(changed.allclose(before));
  // What does not count may be anything.
  const Tensor query = random::normal({1, 2, 5});
  const auto of_values = [&](const Tensor& values) {
    return attention(tuple(query, internal::with_mask(values, mask))).tensor();
  };
  Tensor other = x.clone();
  other.slice(1, 2).fill_(7);
  EXPECT_THAT(elements(of_values(other)), Pointwise(DoubleNear(1e-6), elements(of_values(x))));
}

TEST(Softmax, GivesNothingToWhatDoesNotCount) {
  const Tensor mask = numbers({1, 1, 0}, {1, 3}).to(boolean);
  const Tensor x = internal::with_mask(at::zeros({1, 3}), mask);
  EXPECT_THAT(elements(layers::Softmax()(x)), ElementsAre(0.5, 0.5, 0));
}

TEST(Losses, AreThoseOfTheStepsThatCount) {
  const Tensor mask = numbers({1, 1, 0, 1, 0, 0}, {2, 3}).to(boolean);
  const Tensor predictions = internal::with_mask(numbers({1, 2, 9, 3, 9, 9}, {2, 3, 1}), mask);
  const Tensor labels = at::zeros({2, 3, 1});
  using losses::Reduction;
  const auto loss = [&](Reduction reduction) {
    return elements(losses::MeanAbsoluteError({.reduction = reduction})(labels, predictions));
  };
  EXPECT_THAT(loss(Reduction::NONE), ElementsAre(1, 2, 0, 3, 0, 0));
  EXPECT_THAT(loss(Reduction::SUM), ElementsAre(6));
  EXPECT_THAT(loss(Reduction::AUTO), ElementsAre(2));
  const Tensor nothing = internal::with_mask(predictions.clone(), at::zeros({2, 3}).to(boolean));
  EXPECT_THAT(elements(losses::MeanAbsoluteError()(labels, nothing)), ElementsAre(0));
}

TEST(Masks, CountInFit) {
  const Tensor x = numbers({1, 3, 0, 0, 5, 0, 0, 0}, {2, 4, 1});
  const Sequential model(
      {layers::Masking(), layers::Dense(1, {.use_bias = false, .kernel_initializer = "ones"})});
  model.compile({.optimizer = optimizers::SGD(0.),
                 .loss = "mae",
                 .metrics = {"mse"},
                 .weighted_metrics = {"mae"}});
  const Tensor y = at::ones({2, 4, 1}) * 7;
  const Logs logs = model.evaluate(x, y, {.verbose = 0, .sample_weight = numbers({1, 2})});
  EXPECT_NEAR(logs["mse"], (36 + 16 + 4) / 3., 1e-5);
  EXPECT_NEAR(logs["loss"], (6 + 4 + 2 * 2) / 3., 1e-5);
  EXPECT_NEAR(logs["mae"], (6 + 4 + 2 * 2) / 4., 1e-5);
}

// In a functional model values wait in slots until somebody reads them.
TEST(Masks, ReachLayersThatAreNotNext) {
  const auto x = keras::Input({3, 1});
  const auto marked = layers::Masking()(x);
  const auto kept = layers::Activation("linear")(marked);
  const auto dropped = layers::GlobalMaxPooling1D({.keepdims = true})(marked);
  const auto mean = layers::GlobalAveragePooling1D()(kept);
  const Functional model(x, {mean, dropped});
  const Structure outputs = model(Structure(numbers({1, 5, 0}, {1, 3, 1})));
  EXPECT_THAT(elements(outputs[0].tensor()), ElementsAre(3));
}

}  // namespace
}  // namespace cohort::keras
