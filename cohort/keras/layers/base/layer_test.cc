#include "cohort/keras/layers/base/layer.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cohort/keras/layers/layers.h"
#include "cohort/keras/model/functional.h"
#include "cohort/keras/model/model.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::layers {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Scale : public Layer {
 public:
  using Layer::Layer;
  int builds = 0;
  bool saw_training = false;
  bool fail_build = false;

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    ++builds;
    factor_ = add_weight("factor", {input_shapes[0].back()}, {.initializer = "ones"});
    if (fail_build) throw InvalidArgumentError("no luck");
    offset_ = add_weight("offset", {}, {.initializer = "zeros", .trainable = false});
  }
  Tensor call(const Tensor& x, const CallOptions& options) override {
    saw_training = *options.training;
    return x * factor_.value() + offset_.value();
  }

 private:
  Variable factor_;
  Variable offset_;
};

TEST(Layer, BuildsOnceAndListsItsWeights) {
  Scale layer({.name = "scale"});
  EXPECT_FALSE(layer.built());
  EXPECT_THAT(layer.variables(), IsEmpty());
  layer(at::ones({2, 3}));
  layer(at::ones({5, 3}));
  EXPECT_EQ(layer.builds, 1);
  ASSERT_THAT(layer.variables(), SizeIs(2));
  EXPECT_EQ(layer.variables()[0].name(), "scale/factor");
  EXPECT_THAT(layer.trainable_variables(), SizeIs(1));
  EXPECT_THAT(layer.non_trainable_variables(), SizeIs(1));
  EXPECT_EQ(layer.count_params(), 4);
}

// Where Python has an IndexError.
TEST(Layer, ListsOfAnUnbuiltLayerSayWhyTheyAreEmpty) {
  const LayerHandle layer = Dense(2, {.name = "unbuilt"});
  const auto is_told = [](const auto& list) {
    EXPECT_THAT(list, IsEmpty());
    const auto error = AllOf(HasSubstr("index 0 of a list of 0"), HasSubstr("layer 'unbuilt'"),
                             HasSubstr("call it on a batch"));
    EXPECT_THAT(thrown<OutOfRangeError>([&] { (void)list[0]; }), error);
    EXPECT_THAT(thrown<OutOfRangeError>([&] { (void)list.front(); }), error);
    EXPECT_THAT(thrown<OutOfRangeError>([&] { (void)list.back(); }), error);
    EXPECT_THAT(thrown<OutOfRangeError>([&] { (void)list.at(0); }), error);
  };
  is_told(layer.weights());
  is_told(layer.variables());
  is_told(layer.trainable_variables());
  is_told(layer.non_trainable_variables());
  is_told(layer.get_weights());
  layer(at::ones({1, 3}));
  EXPECT_EQ(layer.weights()[1].shape(), Shape{2});
  EXPECT_EQ(layer.get_weights().back().numel(), 2);
  EXPECT_EQ(thrown<OutOfRangeError>([&] { (void)layer.weights()[2]; }), "index 2 of a list of 2");
  EXPECT_EQ(thrown<OutOfRangeError>([&] { (void)layer.losses()[0]; }), "index 0 of a list of 0");
  EXPECT_THROW((void)layer->children()[0], OutOfRangeError);
}

// As Keras, which raises a ValueError.
TEST(Layer, ParametersOfAnUnbuiltLayerAreNotCounted) {
  const LayerHandle layer = Dense(2);
  const auto error = HasSubstr("is not built yet");
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { layer.count_params(); }), error);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { layer.set_weights({at::ones({2})}); }), error);
  layer(at::ones({1, 3}));
  EXPECT_EQ(layer.count_params(), 8);
}

TEST(Layer, AFailedBuildLeavesNothingBehind) {
  Scale layer;
  layer.fail_build = true;
  EXPECT_THROW(layer(at::ones({2, 3})), InvalidArgumentError);
  EXPECT_FALSE(layer.built());
  EXPECT_THAT(layer.variables(), IsEmpty());
  layer.fail_build = false;
  layer(at::ones({2, 3}));
  EXPECT_THAT(layer.variables(), SizeIs(2));
}

TEST(Layer, IsNamedAfterItsClass) {
  backend::clear_session();
  Scale first;
  EXPECT_EQ(first.class_name(), "Scale");
  EXPECT_EQ(first.name(), "scale");
  EXPECT_EQ(LayerHandle(std::make_shared<Scale>()).name(), "scale_1");
}

TEST(Layer, NonTrainableLayersKeepTheirVariables) {
  const Dense dense(2);
  dense(at::ones({1, 3}));
  dense.set_trainable(false);
  EXPECT_THAT(dense.trainable_variables(), IsEmpty());
  EXPECT_THAT(dense.non_trainable_variables(), SizeIs(2));
}

TEST(Layer, WeightsCanBeReadAndSet) {
  const Dense a(2);
  const Dense b(2);
  a(at::ones({1, 3}));
  b(at::ones({1, 3}));
  b.set_weights(a.get_weights());
  EXPECT_EQ(elements(a(at::ones({1, 3}))), elements(b(at::ones({1, 3}))));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { b.set_weights({at::ones({2})}); }),
              AllOf(HasSubstr("2 variables"), HasSubstr("1 value")));
}

TEST(Layer, WeightsOfAWrongShapeChangeNothing) {
  const Dense dense(2, {.name = "last"});
  dense(at::ones({1, 3}));
  const std::vector<Tensor> before = dense.get_weights();
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                dense.set_weights({at::zeros({3, 2}), at::zeros({3})});
              }),
              AllOf(HasSubstr("'last/bias' of shape [2]"), HasSubstr("float32 [3]")));
  EXPECT_TRUE(dense.get_weights()[0].equal(before[0]));
}

class Outer : public Model {
 public:
  Outer() { track("inner", inner); }
  Scale inner;

 protected:
  Tensor call(const Tensor& x, const CallOptions&) override { return inner(x); }
};

TEST(Layer, InnerCallsInheritTraining) {
  Outer outer;
  outer(at::ones({1, 2}), {.training = true});
  EXPECT_TRUE(outer.inner.saw_training);
  outer(at::ones({1, 2}));
  EXPECT_FALSE(outer.inner.saw_training);
  outer.inner(at::ones({1, 2}));
  EXPECT_FALSE(outer.inner.saw_training);
}

TEST(Layer, ModelsFindTheVariablesOfTheirMembers) {
  Outer outer;
  outer(at::ones({1, 2}));
  EXPECT_THAT(outer.trainable_variables(), SizeIs(1));
  outer.set_trainable(false);
  EXPECT_THAT(outer.trainable_variables(), IsEmpty());
  EXPECT_THAT(outer.non_trainable_variables(), SizeIs(2));
}

TEST(Layer, SettingTrainableReachesAllChildren) {
  Outer outer;
  outer.set_trainable(false);
  EXPECT_FALSE(outer.inner.trainable());
  outer.inner.set_trainable(true);
  outer(at::ones({1, 2}));
  EXPECT_THAT(outer.trainable_variables(), IsEmpty());
  outer.inner.set_trainable(false);
  outer.set_trainable(true);
  EXPECT_TRUE(outer.inner.trainable());
  EXPECT_THAT(outer.trainable_variables(), SizeIs(1));
}

class Shared : public Model {
 public:
  Shared() {
    track("first", dense_);
    track("second", dense_);
  }

 protected:
  Tensor call(const Tensor& x, const CallOptions&) override { return dense_(dense_(x)); }

 private:
  Dense dense_{2, {.kernel_regularizer = regularizers::L2(1)}};
};

TEST(Layer, SharedLayersCountOnce) {
  Shared model;
  model(at::ones({1, 2}));
  EXPECT_THAT(model.variables(), SizeIs(2));
  EXPECT_THAT(model.losses(), SizeIs(1));
}

TEST(Losses, WeightPenaltiesFollowTheWeightsAndHaveGradients) {
  const Dense dense(1, {.use_bias = false, .kernel_regularizer = regularizers::L2(0.5)});
  dense(at::ones({1, 2}));
  dense.set_weights({numbers({1, 2}, {2, 1})});
  ASSERT_THAT(dense.losses(), SizeIs(1));
  EXPECT_EQ(dense.losses()[0].item<double>(), 2.5);
  dense.set_weights({numbers({3, 2}, {2, 1})});
  EXPECT_EQ(dense.losses()[0].item<double>(), 6.5);
  GradientTape tape;
  const auto gradients = tape.gradient(dense.losses()[0], dense.trainable_variables());
  EXPECT_THAT(elements(gradients[0]), ElementsAre(3, 2));
}

class Noisy : public Layer {
 protected:
  Tensor call(const Tensor& x, const CallOptions&) override {
    add_loss(x.mean());
    return x;
  }
};

TEST(Losses, AreThoseOfTheLatestPass) {
  Noisy layer;
  EXPECT_THAT(layer.losses(), IsEmpty());
  layer(numbers({1, 3}));
  ASSERT_THAT(layer.losses(), SizeIs(1));
  layer(numbers({5, 7}));
  ASSERT_THAT(layer.losses(), SizeIs(1));
  EXPECT_EQ(layer.losses()[0].item<double>(), 6);
}

class Twice : public Model {
 public:
  Twice() { track("noisy", noisy_); }

 protected:
  Tensor call(const Tensor& x, const CallOptions&) override { return noisy_(noisy_(x) * 2); }

 private:
  Noisy noisy_;
};

TEST(Losses, GatherOverOnePassOfTheOutermostModel) {
  Twice model;
  model(numbers({1, 3}));
  model(numbers({2, 4}));
  ASSERT_THAT(model.losses(), SizeIs(2));
  EXPECT_EQ(model.losses()[0].item<double>(), 3);
  EXPECT_EQ(model.losses()[1].item<double>(), 6);
}

TEST(Losses, ActivityPenaltyIsDividedByTheBatch) {
  const Dense dense(1, {.use_bias = false,
                        .kernel_initializer = "ones",
                        .activity_regularizer = regularizers::L2(0.5)});
  dense(numbers({1, 3}, {2, 1}));
  ASSERT_THAT(dense.losses(), SizeIs(1));
  EXPECT_THAT(dense.losses()[0].item<double>(), DoubleNear(0.5 * 10 / 2, 1e-6));
  dense(numbers({}, {0, 1}));
  EXPECT_EQ(dense.losses()[0].item<double>(), 0);
}

TEST(Losses, MustBeScalars) {
  class Wrong : public Layer {
    Tensor call(const Tensor& x, const CallOptions&) override {
      add_loss(x);
      return x;
    }
  } layer;
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { layer(at::ones({2})); }),
              AllOf(HasSubstr("'wrong"), HasSubstr("[2]")));
}

TEST(Layer, LibtorchErrorsNameTheInnermostLayer) {
  class Broken : public Layer {
   public:
    Broken() : Layer({.name = "broken"}) {}
    Tensor call(const Tensor& x, const CallOptions&) override { return x.matmul(x); }
  };
  class Around : public Model {
   public:
    Around() : Model({.name = "around"}) { track("broken", broken_); }
    Tensor call(const Tensor& x, const CallOptions&) override { return broken_(x); }

   private:
    Broken broken_;
  } model;
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(at::ones({2, 3}));
              }),
              AllOf(HasSubstr("'broken'"), HasSubstr("[2,3]")));
}

TEST(Layer, AWeightTooLargeForAnyMemoryIsNamed) {
  EXPECT_THAT(
      thrown<InvalidArgumentError>([] {
        layers::Dense(std::numeric_limits<int64_t>::max(), {.name = "huge"})(at::ones({1, 2}));
      }),
      HasSubstr("weight 'kernel' of layer 'huge' cannot have the shape [2,9223372036854775807]"));
}

TEST(Layer, WhatItCannotTakeIsNamed) {
  const Dense dense(1, {.name = "d"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                dense(tuple(at::ones({1, 2}), 1));
              }),
              HasSubstr("'d'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { dense(Tensor()); }), HasSubstr("defined"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { LayerHandle(std::shared_ptr<Layer>()); }),
              HasSubstr("nullptr"));
  class Empty : public Layer {
  } empty;
  EXPECT_THAT(thrown<UnimplementedError>([&] { empty(at::ones({1})); }), HasSubstr("Empty"));
}

class SumAndDifference : public Layer {
 protected:
  Structure call(const Structure& inputs, const CallOptions&) override {
    const auto [a, b] = inputs;
    return dict({{"sum", a + b}, {"difference", a - b}});
  }
};

TEST(Layer, TakesAndReturnsStructures) {
  SumAndDifference layer;
  const Structure result = layer(tuple(numbers({3}), numbers({1})));
  EXPECT_THAT(elements(result["sum"].tensor()), ElementsAre(4));
  EXPECT_THAT(elements(result["difference"].tensor()), ElementsAre(2));
}

class Forgetful : public Layer {
 public:
  explicit Forgetful(bool tracks) {
    if (tracks) track("dense", dense_);
  }

 protected:
  Tensor call(const Tensor& x, const CallOptions&) override { return relu_(dense_(x)); }

 private:
  Dense dense_{2, {.name = "forgotten"}};
  Activation relu_{"relu"};
};

TEST(Layer, AnUntrackedLayerIsNamedOnce) {
  testing::internal::CaptureStderr();
  Forgetful(true)(at::ones({1, 3}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  Forgetful layer(false);
  layer(at::ones({1, 3}));
  layer(at::ones({1, 3}));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, AllOf(HasSubstr("'forgotten' (Dense)"), HasSubstr("Call track(")));
  EXPECT_EQ(said.find("forgotten"), said.rfind("forgotten"));
  EXPECT_THAT(layer.variables(), IsEmpty());
}

class Adder : public Layer {
 public:
  enum class What { kLoss, kMetric };
  explicit Adder(What what) : Layer({.name = "adder"}), what_(what) {}

 protected:
  Tensor call(const Tensor& x, const CallOptions&) override {
    if (what_ == What::kLoss) add_loss(x.sum());
    if (what_ == What::kMetric) add_metric(x, "sum");
    return x;
  }

 private:
  const What what_;
};

class Calls : public Layer {
 public:
  Calls(LayerHandle inner, bool tracks) : inner_(std::move(inner)) {
    if (tracks) track("inner", inner_);
  }

 protected:
  Tensor call(const Tensor& x, const CallOptions&) override { return inner_(x); }

 private:
  const LayerHandle inner_;
};

TEST(Layer, AnUntrackedLayerThatAddsSomethingIsNamedOnce) {
  const auto said_of = [](const auto& make, bool tracks) {
    testing::internal::CaptureStderr();
    const LayerHandle inner = make();
    inner(at::ones({1, 3}));  // by itself it may
    Calls layer(inner, tracks);
    layer(at::ones({1, 3}));
    layer(at::ones({1, 3}));
    return testing::internal::GetCapturedStderr();
  };
  const auto adds_loss = [] { return std::make_shared<Adder>(Adder::What::kLoss); };
  const auto adds_metric = [] { return std::make_shared<Adder>(Adder::What::kMetric); };
  const auto penalized = [] {
    return Activation("relu", {.activity_regularizer = "l2", .name = "adder"});
  };
  const auto is_named_once = [](const std::string& said) {
    return said.find("'adder'") != said.npos && said.find("adder") == said.rfind("adder");
  };
  EXPECT_THAT(said_of(adds_metric, false),
              AllOf(HasSubstr("'adder' (Adder)"), HasSubstr("metrics"), HasSubstr("Call track("),
                    testing::Truly(is_named_once)));
  EXPECT_THAT(said_of(adds_loss, false), AllOf(HasSubstr("'adder' (Adder)"), HasSubstr("losses"),
                                               testing::Truly(is_named_once)));
  EXPECT_THAT(said_of(penalized, false), AllOf(HasSubstr("'adder' (Activation)"),
                                               HasSubstr("losses"), testing::Truly(is_named_once)));
  EXPECT_EQ(said_of(adds_metric, true), "");
  EXPECT_EQ(said_of(adds_loss, true), "");
  EXPECT_EQ(said_of(penalized, true), "");
}

TEST(Lambda, TakesOneTensorOrTheMembersOfATuple) {
  const Lambda twice([](const Tensor& x) { return 2 * x; });
  EXPECT_THAT(elements(twice(numbers({1, 2}))), ElementsAre(2, 4));
  const Lambda difference([](const Tensor& a, const Tensor& b) { return std::pair(a - b, a); });
  const Structure both = difference(tuple(numbers({3}), numbers({1})));
  EXPECT_THAT(elements(both[0].tensor()), ElementsAre(2));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { difference(numbers({1})); }),
              HasSubstr("the function of a Lambda layer"));
}

TEST(Lambda, StandsInFunctionalModels) {
  const SymbolicTensor a = Input({3}), b = Input({3});
  const SymbolicStructure score =
      Lambda([](const Tensor& x, const Tensor& y) { return (x * y).sum({1}, true); })({a, b});
  const Functional model({{"a", a}, {"b", b}}, score);
  EXPECT_THAT(SymbolicTensor(score).shape(), ElementsAre(kUnknownDim, 1));
  EXPECT_THAT(elements(model(dict({{"a", at::ones({2, 3})}, {"b", at::ones({2, 3})}})).tensor()),
              ElementsAre(3, 3));
  EXPECT_THAT(thrown<UnimplementedError>([&] { model.to_json(); }), HasSubstr("lambda"));
}

}  // namespace
}  // namespace cohort::keras::layers
