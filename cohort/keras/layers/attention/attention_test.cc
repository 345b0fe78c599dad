// Attention, AdditiveAttention, the scores of MultiHeadAttention and EinsumDense: what
// tests/interop, which compares them with TensorFlow's, cannot see.
#include "cohort/keras/layers/attention/attention.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/layers/attention/additive_attention.h"
#include "cohort/keras/layers/attention/einsum_dense.h"
#include "cohort/keras/layers/attention/multi_head_attention.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"

namespace cohort::keras::layers {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

TEST(Attention, ReadsWhatAQueryFits) {
  const Tensor values = numbers({100, 0, 0, 100}, {1, 2, 2});
  const Structure read =
      Attention({.return_attention_scores = true})(tuple(numbers({0, 9}, {1, 1, 2}), values));
  EXPECT_THAT(elements(read[1].tensor()), ElementsAre(DoubleNear(0, 1e-6), DoubleNear(1, 1e-6)));
  EXPECT_THAT(elements(read[0].tensor()), ElementsAre(DoubleNear(0, 1e-4), DoubleNear(100, 1e-4)));
}

TEST(Attention, HidesTheFutureAndWhatIsMasked) {
  random::set_seed(3);
  const Tensor x = random::normal({2, 3, 4});
  const Attention attention({.use_causal_mask = true, .return_attention_scores = true});
  const Tensor mask = numbers({1, 1, 0, 1, 1, 1}, {2, 3}).to(boolean);
  const Structure read = attention(tuple(x, internal::with_mask(x.clone(), mask)));
  const Tensor scores = read[1].tensor();
  EXPECT_EQ(elements(scores.triu(1).sum()), elements(scores.triu(1).sum() * 0));
  EXPECT_THAT(elements(scores[0].select(1, 2)), Each(0));
  EXPECT_FALSE(internal::mask_of(read[0].tensor()).defined());
}

TEST(Attention, GivesZerosWhereAQueryIsMasked) {
  const Tensor x = at::ones({2, 3, 4});
  const Tensor mask = numbers({1, 1, 0, 1, 1, 1}, {2, 3}).to(boolean);
  for (const LayerHandle& layer : std::vector<LayerHandle>{Attention(), AdditiveAttention()}) {
    const Tensor read = layer(tuple(internal::with_mask(x.clone(), mask), x)).tensor();
    EXPECT_THAT(elements(read[0][2]), Each(0));
    EXPECT_TRUE(internal::mask_of(read).equal(mask));
  }
}

TEST(Attention, DropsScoresInTrainingAlone) {
  random::set_seed(5);
  const Tensor x = random::normal({4, 30, 2});
  const Attention attention({.dropout = 0.5, .return_attention_scores = true});
  const Tensor all = attention(tuple(x, x))[1].tensor();
  EXPECT_THAT(elements(all.sum(-1)), Each(DoubleNear(1, 1e-5)));
  const Structure dropped = attention(tuple(x, x), {.training = true});
  const Tensor scores = dropped[1].tensor();
  const double share = (scores == 0).to(float32).mean().item<double>();
  EXPECT_NEAR(share, 0.5, 0.05);
  EXPECT_TRUE(at::allclose(scores, all * 2 * (scores != 0)));
  EXPECT_TRUE(at::allclose(dropped[0].tensor(), scores.matmul(x), 1e-4, 1e-5));
}

TEST(Attention, SaysWhatDoesNotFit) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Attention({.score_mode = "sum"}); }),
              AllOf(HasSubstr("score_mode"), HasSubstr("'sum'"), HasSubstr("'concat'")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { AdditiveAttention({.dropout = 1.5}); }),
              HasSubstr("AdditiveAttention: dropout is 1.5"));
  const Attention attention({.name = "a"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                attention(at::ones({2, 3, 4}));
              }),
              AllOf(HasSubstr("layer 'a' takes a tuple"), HasSubstr(",3,4]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                attention(tuple(at::ones({2, 3, 4}), at::ones({2, 3, 5})));
              }),
              HasSubstr("layer 'a'"));
  EXPECT_NO_THROW(attention(tuple(at::ones({2, 3, 4}), at::ones({2, 3, 4}))));
}

TEST(MultiHeadAttention, GivesScoresOfEachHead) {
  random::set_seed(3);
  const Tensor x = random::normal({2, 5, 4}), y = random::normal({2, 6, 4});
  const MultiHeadAttention plain(3, 2);
  const MultiHeadAttention layer(3, 2, {.dropout = 0.5, .return_attention_scores = true});
  plain(tuple(x, y));
  layer(tuple(x, y));
  layer.set_weights(plain.get_weights());
  const Structure both = layer(tuple(x, y));
  EXPECT_EQ(both[1].tensor().sizes(), at::IntArrayRef({2, 3, 5, 6}));
  EXPECT_TRUE(both[0].tensor().equal(plain(tuple(x, y)).tensor()));
  // The scores of training are those before dropout.
  const Tensor scores = layer(tuple(x, y), {.training = true})[1].tensor();
  EXPECT_TRUE(scores.equal(both[1].tensor()));
}

TEST(MultiHeadAttention, AttendsOverTheAxesThatAreNamed) {
  random::set_seed(4);
  const Tensor x = random::normal({2, 3, 4, 5});
  const MultiHeadAttention rows(2, 3, {.attention_axes = {2}, .return_attention_scores = true});
  const Structure all = rows(tuple(x, x));
  EXPECT_EQ(all[1].tensor().sizes(), at::IntArrayRef({2, 3, 2, 4, 4}));
  const MultiHeadAttention one(2, 3);
  one(tuple(x.select(1, 0), x.select(1, 0)));
  one.set_weights(rows.get_weights());
  const Tensor row = x.select(1, 1);
  EXPECT_TRUE(
      at::allclose(all[0].tensor().select(1, 1), one(tuple(row, row)).tensor(), 1e-4, 1e-6));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                MultiHeadAttention(2, 3, {.attention_axes = {3}, .name = "m"})(tuple(x, x));
              }),
              AllOf(HasSubstr("layer 'm'"), HasSubstr("attention_axes is [3]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                MultiHeadAttention(2, 3, {.output_dim = 2, .output_shape = {2, 3}});
              }),
              HasSubstr("give one of them"));
}

TEST(MultiHeadAttention, ScoresAreAnOutputOfAFunctionalModel) {
  random::set_seed(4);
  const SymbolicTensor x = Input({3, 4});
  const SymbolicStructure made = MultiHeadAttention(
      2, 3, {.return_attention_scores = true, .name = "m"})(SymbolicStructure{x, x});
  const Functional model(x, {Dense(2)(made[0]), made[1]});
  const ModelHandle copy = models::model_from_json(model.to_json());
  copy.set_weights(model.get_weights());
  const Tensor data = random::normal({2, 3, 4});
  const Structure ours = model(Structure(data)), theirs = copy(Structure(data));
  EXPECT_EQ(ours[1].tensor().sizes(), at::IntArrayRef({2, 2, 3, 3}));
  EXPECT_TRUE(ours[0].tensor().equal(theirs[0].tensor()));
  EXPECT_TRUE(ours[1].tensor().equal(theirs[1].tensor()));
}

TEST(EinsumDense, IsADenseLayer) {
  random::set_seed(5);
  const Tensor x = random::normal({3, 5, 4});
  const Dense dense(6, {.activation = "tanh"});
  const EinsumDense einsum("...x,xy->...y", {6}, {.activation = "tanh", .bias_axes = "y"});
  dense(x);
  einsum(x);
  einsum.set_weights(dense.get_weights());
  EXPECT_TRUE(at::allclose(einsum(x), dense(x), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(einsum(x[0]), dense(x[0]), 1e-5, 1e-6));
}

TEST(EinsumDense, SaysWhatDoesNotFit) {
  const auto refused = [](const char* equation, std::vector<int64_t> shape, const char* axes = "") {
    return thrown<InvalidArgumentError>([&] {
      EinsumDense(equation, std::move(shape),
                  {.bias_axes = axes, .name = "e"})(at::ones({2, 3, 4}));
    });
  };
  EXPECT_THAT(refused("abc,cd", {5}), AllOf(HasSubstr("'abc,cd'"), HasSubstr("of the form")));
  EXPECT_THAT(refused("ab...,bc->...ac", {5}), HasSubstr("of the form"));
  EXPECT_THAT(refused("abc,cd->abe", {3, 5}), HasSubstr("the letter 'e'"));
  EXPECT_THAT(refused("abc,cd->abd", {3, 5}, "x"), HasSubstr("no letter 'x'"));
  EXPECT_THAT(refused("abc,cd->abd", {7, 5}), AllOf(HasSubstr("'b'"), HasSubstr("layer 'e'")));
  EXPECT_THAT(refused("abc,cd->abd", {5}), HasSubstr("a size for each letter"));
  EXPECT_THAT(refused("abc,cd->abd", {3, kUnknownDim}), HasSubstr("how large the letter 'd'"));
  EXPECT_THAT(refused("abcd,de->abce", {3, 4, 5}), HasSubstr("of rank 4 or more"));
}

TEST(AttentionModels, OfTwoReplicasTrainAsThatOfOne) {
  const auto losses = [](int replicas) {
    random::set_seed(6);
    const distribute::MirroredStrategy strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    const SymbolicTensor x = Input({4, 3});
    const SymbolicTensor read = Attention({.use_scale = true})({x, x});
    const SymbolicTensor heads = MultiHeadAttention(2, 2)({read, x});
    const Functional model(x, Dense(1)(GlobalAveragePooling1D()(AdditiveAttention()({heads, x}))));
    model.compile({.optimizer = "sgd", .loss = "mse"});
    const Tensor data = random::RandomGenerator::from_seed(2).normal({8, 4, 3});
    return model.fit(data, data.sum({1, 2}),
                     {.batch_size = 4, .epochs = 2, .verbose = 0, .shuffle = false})["loss"];
  };
  EXPECT_THAT(losses(2), Pointwise(DoubleNear(1e-5), losses(1)));
}

}  // namespace
}  // namespace cohort::keras::layers
