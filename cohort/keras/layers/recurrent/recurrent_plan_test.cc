// LSTM and GRU within models, which run them as plans, beside the layers called by hand, which do
// not.
#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing_errors.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/keras/testing_two_replicas.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"

namespace cohort::keras::layers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

void expect_alike(const Tensor& ours, const Tensor& theirs, const std::string& what) {
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  EXPECT_TRUE(at::allclose(ours, theirs, 1e-4, 1e-5 * theirs.abs().max().item<double>() + 1e-8))
      << what;
}

void expect_plan_equals_layer(const LayerHandle& layer, const Tensor& x) {
  const Sequential model({layer});
  layer(x);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor ours = model(x, {.training = true});
  ASSERT_THAT(model.explain(), HasSubstr("ran 1 times"));
  const Tensor theirs = layer(x, {.training = true});
  expect_alike(ours, theirs, "output");
  const Tensor weights = at::rand(ours.sizes());
  std::vector<Tensor> sources{x};
  for (const Variable& variable : layer.trainable_variables()) sources.push_back(variable.value());
  const auto our_gradients = tape.gradient((ours * weights).sum(), sources);
  const auto their_gradients = tape.gradient((theirs * weights).sum(), sources);
  for (size_t i = 0; i < sources.size(); ++i) {
    expect_alike(our_gradients[i], their_gradients[i], "source " + std::to_string(i));
  }
}

template <class Recurrent>
class PlannedRecurrent : public ::testing::Test {};
using PlannedKinds = ::testing::Types<LSTM, GRU>;
TYPED_TEST_SUITE(PlannedRecurrent, PlannedKinds);

TYPED_TEST(PlannedRecurrent, EqualsTheLayer) {
  random::set_seed(4);
  for (const bool sequences : {false, true}) {
    for (const bool backwards : {false, true}) {
      for (const bool bias : {false, true}) {
        const TypeParam layer(11, {.use_bias = bias,
                                   .return_sequences = sequences,
                                   .go_backwards = backwards,
                                   .bias_initializer = "random_normal"});
        for (const int64_t batch : {1, 3, 40}) {
          expect_plan_equals_layer(layer, random::normal({batch, 5, 7}));
        }
      }
    }
  }
}

TYPED_TEST(PlannedRecurrent, IsAPlanByItself) {
  const Sequential model({TypeParam(6, {.return_sequences = true, .name = "lower"}),
                          TypeParam(5, {.name = "upper"}), Dense(2, {.name = "dense"})});
  model(random::normal({3, 4, 2}));
  EXPECT_THAT(model.explain(),
              AllOf(HasSubstr("lower: one plan\n  [3,4,2], with gradients: ran 1 times"),
                    HasSubstr(" of 6 units over 4 steps"), HasSubstr("upper: one plan"),
                    HasSubstr("dense: by itself")));
}

TYPED_TEST(PlannedRecurrent, SaysWhyItIsNone) {
  const auto reason = [](const LayerHandle& layer) { return Sequential({layer}).explain(); };
  EXPECT_THAT(reason(TypeParam(3, {.dropout = 0.1})), HasSubstr("dropout"));
  EXPECT_THAT(reason(TypeParam(3, {.recurrent_dropout = 0.1})), HasSubstr("dropout"));
  EXPECT_THAT(reason(TypeParam(3, {.activation = "relu"})), HasSubstr("usual activations"));
  EXPECT_THAT(reason(TypeParam(3, {.recurrent_activation = "tanh"})),
              HasSubstr("usual activations"));
  EXPECT_THAT(reason(TypeParam(3, {.return_state = true})), HasSubstr("returns its state"));
  EXPECT_THAT(reason(TypeParam(3, {.stateful = true})), HasSubstr("batch before"));
  EXPECT_THAT(reason(TypeParam(3, {.dtype = float64})), HasSubstr("float64"));
  EXPECT_THAT(reason(SimpleRNN(3)), HasSubstr("LSTM and GRU alone"));
  EXPECT_THAT(reason(GRU(3, {.reset_after = false})), HasSubstr("usual activations"));
}

TYPED_TEST(PlannedRecurrent, OtherInputsRunAsTheLayer) {
  random::set_seed(4);
  const TypeParam layer(4, {.return_sequences = true, .name = "recurrent"});
  const Sequential model({layer});
  const Tensor x = random::normal({3, 5, 2});
  model(x);
  EXPECT_EQ(model(x.slice(0, 0, 0)).sizes(), (std::vector<int64_t>{0, 5, 4}));
  expect_alike(model(x.to(float64)), layer(x), "float64");
  const std::string before = model.explain();
  const Sequential masked({Masking(), layer});
  Tensor padded = x.clone();
  padded.select(0, 1).slice(0, 2).zero_();
  EXPECT_TRUE(masked(padded).equal(layer(Masking()(padded))));
  const Tensor mask = padded.ne(0).any(2);
  EXPECT_TRUE(model(padded, {.mask = mask}).equal(masked(padded)));
  EXPECT_FALSE(masked(padded).allclose(layer(padded)));
  EXPECT_THAT(masked.explain(), Not(HasSubstr("ran")));
  EXPECT_EQ(model.explain(), before);
}

TYPED_TEST(PlannedRecurrent, IsBuiltAndCheckedAsTheLayer) {
  const Sequential model({TypeParam(4, {.name = "recurrent"})});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                  model(at::ones({2, 3}));
                }),
                AllOf(HasSubstr("'recurrent'"), HasSubstr("[2,3]")));
  }
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(at::ones({2, 0, 3}));
              }),
              HasSubstr("one step or more"));
  EXPECT_EQ(model(at::ones({2, 5, 3})).sizes(), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(model(at::ones({2, 5, 3})).sizes(), (std::vector<int64_t>{2, 4}));
  EXPECT_THAT(model.explain(), HasSubstr("ran"));
  EXPECT_THROW(model(at::ones({2, 5, 6})), InvalidArgumentError);
}

// A state given beside the sequences, in a functional model.
TYPED_TEST(PlannedRecurrent, TakesAStateWithoutAPlan) {
  random::set_seed(4);
  const SymbolicTensor sequences = Input({5, 3}), state = Input({4});
  const GRU layer(4);
  const Functional model({sequences, state}, layer({sequences, state}));
  const Tensor x = random::normal({2, 5, 3}), h = random::normal({2, 4});
  const Structure outputs = model(tuple(x, h));
  EXPECT_TRUE(outputs.tensor().equal(layer(tuple(x, h)).tensor()));
  EXPECT_FALSE(outputs.tensor().allclose(layer(x)));
}

TYPED_TEST(PlannedRecurrent, GivesTheSameBitsOnEveryReplicaAndInEveryRun) {
  const auto train = [] {
    const auto make = [] {
      return Sequential({TypeParam(9, {.return_sequences = true}), TypeParam(6), Dense(3)});
    };
    return weights_of_two_replicas(make, {30, 5, 4}, 19);
  };
  const std::vector<Tensor> weights = train();
  EXPECT_TRUE(weights[0].equal(weights[1]));
  EXPECT_TRUE(weights[0].equal(train()[0]));
}

}  // namespace
}  // namespace cohort::keras::layers
