// Embedding and GlobalAveragePooling1D.
#include "cohort/keras/layers/embedding.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"

namespace cohort::keras::layers {
namespace {

using distribute::mirrored;
using distribute::PerReplica;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Lt;

Tensor ids(const std::vector<double>& values, const std::vector<int64_t>& shape,
           DType dtype = int64) {
  return numbers(values, shape, dtype);
}

// Row i is [10 i, 10 i + 1].
Embedding table(int64_t rows) {
  Embedding embedding(rows, 2, {.name = "table"});
  embedding(ids({0}, {1}));
  std::vector<double> values;
  for (int64_t i = 0; i < rows; ++i) {
    values.push_back(static_cast<double>(10 * i));
    values.push_back(static_cast<double>(10 * i + 1));
  }
  embedding.set_weights({numbers(values, {rows, 2})});
  return embedding;
}

TEST(Embedding, PicksRows) {
  const Embedding embedding = table(4);
  EXPECT_EQ(embedding.variables()[0].name(), "table/embeddings");
  EXPECT_THAT(elements(embedding(ids({3, 0, 3}, {3}))), ElementsAre(30, 31, 0, 1, 30, 31));
  EXPECT_THAT(embedding(ids({1, 2, 3, 0}, {1, 2, 2})).sizes(), ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(elements(embedding(ids({2}, {}))), ElementsAre(20, 21));
  EXPECT_THAT(embedding(at::zeros({0, 5}, at::dtype(int64))).sizes(), ElementsAre(0, 5, 2));
}

TEST(Embedding, OfARaggedTensorIsRagged) {
  const Embedding embedding = table(4);
  const auto ragged = RaggedTensor::from_row_lengths(ids({3, 0, 1}, {3}), {1, 0, 2});
  const RaggedTensor vectors = embedding(Structure(ragged));
  EXPECT_THAT(vectors.values().sizes(), ElementsAre(3, 2));
  EXPECT_THAT(elements(vectors.values()), ElementsAre(30, 31, 0, 1, 10, 11));
  EXPECT_THAT(elements(vectors.to_tensor()[2]), ElementsAre(0, 1, 10, 11));
}

TEST(Embedding, TakesIdsOfAnyDtype) {
  const Embedding embedding = table(4);
  for (const DType dtype : {int32, uint8, float32, float64}) {
    EXPECT_THAT(elements(embedding(ids({1}, {1}, dtype))), ElementsAre(10, 11))
        << internal::dtype_name(dtype);
  }
  EXPECT_THAT(elements(embedding(ids({2.9, -0.5}, {2}, float32))), ElementsAre(20, 21, 0, 1));
}

TEST(Embedding, StartsFromSmallUniformValues) {
  const Embedding embedding(50, 4, {.embeddings_initializer = "uniform"});
  embedding(ids({0}, {1}));
  const Tensor values = embedding.get_weights()[0];
  EXPECT_THAT(values.sizes(), ElementsAre(50, 4));
  EXPECT_LE(values.abs().max().item<double>(), 0.05);
  EXPECT_GT(values.max().item<double>(), 0.03);
  EXPECT_LT(values.min().item<double>(), -0.03);
}

TEST(Embedding, ItsGradientCountsTheIds) {
  const Embedding embedding = table(3);
  GradientTape tape;
  const Tensor loss = embedding(ids({2, 0, 2, 2}, {2, 2})).sum();
  const Tensor gradient = tape.gradient(loss, embedding.trainable_variables())[0];
  EXPECT_THAT(gradient.sizes(), ElementsAre(3, 2));
  EXPECT_TRUE(gradient.is_sparse());
  EXPECT_THAT(elements(gradient.to_dense()), ElementsAre(1, 1, 0, 0, 3, 3));
}

TEST(Embedding, IdsOutOfRangeAreNamedWithTheirPosition) {
  const Embedding embedding = table(4);
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] {
        embedding(ids({0, 1, 2, 4}, {2, 2}));
      }),
      AllOf(HasSubstr("'table'"), HasSubstr("id 4 "), HasSubstr("[1,1]"), HasSubstr("[0, 4)")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                embedding(ids({0, -1}, {2}, int32));
              }),
              AllOf(HasSubstr("id -1 "), HasSubstr("position [1]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { embedding(ids({4.5}, {1}, float32)); }),
              HasSubstr("id 4.5 "));
  for (const double id : {1e30, -1e30, std::nan("")}) {
    EXPECT_THROW(embedding(ids({id}, {1}, float64)), InvalidArgumentError);
  }
}

TEST(Embedding, SizesAreChecked) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Embedding(0, 2); }), HasSubstr("input_dim is 0"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Embedding(2, -1); }),
              HasSubstr("output_dim is -1"));
}

TEST(Embedding, RegularizesItsTable) {
  const Embedding embedding(
      2, 1, {.embeddings_initializer = "ones", .embeddings_regularizer = regularizers::L2(0.5)});
  embedding(ids({0}, {1}));
  EXPECT_EQ(embedding.losses().at(0).item<double>(), 1);
}

TEST(Embedding, IsBuiltByASymbolicInput) {
  const Sequential model({Input({7}), Embedding(5, 3), GlobalAveragePooling1D()});
  EXPECT_TRUE(model.built());
  EXPECT_EQ(model.count_params(), 15);
}

// 4 words in a sentence, a score for each sentence; ids 0 .. 9.
std::vector<double> train_scores(int replicas) {
  const Float64 wide;
  random::set_seed(5);
  const auto strategy = mirrored(replicas);
  const auto scope = strategy.scope();
  const Sequential model({Embedding(10, 3), GlobalAveragePooling1D(), Dense(1)});
  const optimizers::Adam adam({.learning_rate = 0.05});
  const auto step = [&](const Tensor& words, const Tensor& scores) {
    GradientTape tape;
    const Tensor loss = (model(words) - scores).square().sum() / 4;
    const auto variables = model.trainable_variables();
    adam.apply_gradients(zip(tape.gradient(loss, variables), variables));
    return loss;
  };
  const Tensor words = ids({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 1, 3, 5, 7}, {4, 4});
  const Tensor scores = numbers({1, 2, 3, 4}, {4, 1}, float64);
  std::vector<double> losses;
  for (int i = 0; i < 10; ++i) {
    PerReplica<Tensor>::Values word_parts, score_parts;
    for (const Tensor& part : words.chunk(replicas)) word_parts.push_back(part);
    for (const Tensor& part : scores.chunk(replicas)) score_parts.push_back(part);
    const auto parts = strategy.run(step, PerReplica<Tensor>(std::move(word_parts)),
                                    PerReplica<Tensor>(std::move(score_parts)));
    losses.push_back(strategy.reduce(distribute::ReduceOp::SUM, parts).item<double>());
  }
  return losses;
}

TEST(Embedding, FollowsOneLossCurveOnAnyNumberOfReplicas) {
  const std::vector<double> one = train_scores(1);
  EXPECT_LT(one.back(), one.front());
  for (const int replicas : {2, 4}) {
    const std::vector<double> several = train_scores(replicas);
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_THAT(std::abs(several[i] - one[i]) / one[i], Lt(1e-9)) << replicas;
    }
  }
}

TEST(GlobalAveragePooling1D, AveragesOverTheSteps) {
  const GlobalAveragePooling1D pool({.name = "pool"});
  const Tensor x = numbers({1, 2, 3, 4, 5, 60, -1, -2, -3, -4, -5, -6}, {2, 3, 2});
  const Tensor y = pool(x);
  EXPECT_THAT(y.sizes(), ElementsAre(2, 2));
  EXPECT_THAT(elements(y), ElementsAre(3, 22, -3, -4));
  EXPECT_THAT(pool(at::zeros({0, 3, 2})).sizes(), ElementsAre(0, 2));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                pool(at::ones({2, 3}));
              }),
              AllOf(HasSubstr("'pool'"), HasSubstr("rank 3")));
}

TEST(GlobalAveragePooling1D, SharesItsGradientAmongTheSteps) {
  const Variable x(at::ones({1, 4, 2}), {.name = "x"});
  GradientTape tape;
  const Tensor loss = GlobalAveragePooling1D()(x.value()).sum();
  EXPECT_THAT(elements(tape.gradient(loss, std::vector<Variable>{x})[0]), Each(0.25));
}

}  // namespace
}  // namespace cohort::keras::layers
