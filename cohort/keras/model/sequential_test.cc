#include "cohort/keras/model/sequential.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <sstream>

#include "cohort/core/testing_folder.h"
#include "cohort/keras/layers/layers.h"
#include "cohort/keras/metrics/mean.h"
#include "cohort/keras/optimizers/optimizers.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Sequential, EmptyOneReturnsWhatItGets) {
  const Sequential model;
  EXPECT_THAT(elements(model(numbers({1, 2}))), ElementsAre(1, 2));
}

TEST(Sequential, RunsItsLayersInOrder) {
  backend::clear_session();
  Sequential model;
  model = Sequential({layers::Dense(4, {.activation = "relu"}), layers::Dense(2)});
  EXPECT_EQ(model.name(), "sequential");
  EXPECT_THAT(model.layer_names(), ElementsAre("dense", "dense_1"));
  EXPECT_THAT(model(at::ones({3, 5})).sizes(), ElementsAre(3, 2));
  std::vector<std::string> names;
  for (const Variable& variable : model.trainable_variables()) names.push_back(variable.name());
  EXPECT_THAT(names, ElementsAre("dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"));
}

TEST(Sequential, IsBuiltAtOnceWhereTheInputIsKnown) {
  Sequential model({Input({5}), layers::Dense(4)});
  EXPECT_TRUE(model.built());
  EXPECT_THAT(model.variables(), SizeIs(2));
  model.add(layers::Dense(2));
  EXPECT_THAT(model.variables(), SizeIs(4));
  const Sequential other({layers::InputLayer({3}), layers::Dense(1)});
  EXPECT_THAT(other.variables()[0].shape(), ElementsAre(3, 1));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.add(layers::Conv2D(1, 1)); }),
              AllOf(HasSubstr("'conv2d"), HasSubstr("rank 4")));
}

TEST(Sequential, LayersComeAndGo) {
  const Sequential model;
  model.add(layers::Dense(1, {.name = "a"}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.add(layers::Dense(1, {.name = "a"})); }),
              HasSubstr("'a'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.add(layers::InputLayer({2})); }),
              HasSubstr("first"));
  model.pop();
  EXPECT_THAT(model.layer_names(), IsEmpty());
  EXPECT_THROW(model.pop(), FailedPreconditionError);
}

TEST(Sequential, Nests) {
  const Sequential inner({layers::Dense(3), layers::Dense(2)}, {.name = "inner"});
  const Sequential outer({inner, layers::Dense(1)});
  outer(at::ones({1, 4}));
  EXPECT_THAT(outer.trainable_variables(), SizeIs(6));
  EXPECT_EQ(&outer.get_layer("inner"), inner.get());
}

// So that a list of Keras's `get_weights` fits.
TEST(Sequential, WeightsAreListedLayerByLayer) {
  const Sequential inner({layers::BatchNormalization(), layers::Dense(2)});
  const Sequential model({layers::Dense(3), inner, layers::Dense(1, {.use_bias = false})});
  model(at::ones({1, 4}));
  std::vector<std::string> names;
  for (const Variable& variable : model.weights()) {
    names.push_back(variable.name().substr(variable.name().rfind('/') + 1));
  }
  EXPECT_THAT(names, ElementsAre("kernel", "bias", "gamma", "beta", "moving_mean",
                                 "moving_variance", "kernel", "bias", "kernel"));
  EXPECT_THAT(model.get_weights(), SizeIs(9));
  model.set_weights(model.get_weights());
}

TEST(Sequential, FindsLayersByNameAndIndex) {
  const Sequential model({layers::Dense(3, {.name = "a"}), layers::Dense(2, {.name = "b"})});
  EXPECT_EQ(model.get_layer("b").name(), "b");
  EXPECT_EQ(model.get_layer(0).name(), "a");
  EXPECT_THAT(thrown<NotFoundError>([&] { model.get_layer("c"); }),
              AllOf(HasSubstr("'c'"), HasSubstr("a, b")));
  EXPECT_THROW(model.get_layer(2), OutOfRangeError);
}

TEST(Sequential, SummaryIsThatOfKeras) {
  backend::clear_session();
  const Sequential model({layers::Conv2D(32, 3, {.activation = "relu"}), layers::MaxPooling2D(),
                          layers::Flatten(), layers::Dense(10)});
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { model.summary(); }), HasSubstr("'sequential'"));
  model(at::ones({2, 28, 28, 1}));
  const std::string expected =
      "Model: \"sequential\"\n"
      "_________________________________________________________________\n"
      " Layer (type)                Output Shape              Param #   \n"
      "=================================================================\n"
      " conv2d (Conv2D)             (None, 26, 26, 32)        320       \n"
      "                                                                 \n"
      " max_pooling2d (MaxPooling2  (None, 13, 13, 32)        0         \n"
      " D)                                                              \n"
      "                                                                 \n"
      " flatten (Flatten)           (None, 5408)              0         \n"
      "                                                                 \n"
      " dense (Dense)               (None, 10)                54090     \n"
      "                                                                 \n"
      "=================================================================\n"
      "Total params: 54410 (212.54 KB)\n"
      "Trainable params: 54410 (212.54 KB)\n"
      "Non-trainable params: 0 (0.00 Byte)\n"
      "_________________________________________________________________\n";
  EXPECT_EQ(model.summary_text(), expected);
  std::ostringstream out;
  model.summary(out);
  EXPECT_EQ(out.str(), expected);
}

TEST(Sequential, AnUnbuiltOneHasNoWeightsToReadOrSave) {
  const Sequential model({layers::Dense(3, {.name = "first"}), layers::Dense(1)});
  const internal::TemporaryFolder folder;
  const auto refused = [](const auto& call) {
    EXPECT_THAT(thrown<FailedPreconditionError>(call), HasSubstr("is not built yet"));
  };
  refused([&] { model.count_params(); });
  refused([&] { model.get_weights(); });
  refused([&] { model.set_weights({}); });
  refused([&] { model.save_weights(folder / "weights"); });
  EXPECT_FALSE(std::filesystem::exists(folder / "weights.index"));
  EXPECT_THROW((void)model.weights()[0], OutOfRangeError);
  EXPECT_THROW((void)model.trainable_variables().front(), OutOfRangeError);
  EXPECT_THROW((void)model.layers()[2], OutOfRangeError);
  EXPECT_THROW((void)model.layer_names()[2], OutOfRangeError);
  EXPECT_THROW((void)model.metrics()[0], OutOfRangeError);
  EXPECT_THROW((void)metrics::Mean().variables()[2], OutOfRangeError);
  EXPECT_THROW((void)optimizers::SGD().variables()[5], OutOfRangeError);
  model(at::ones({1, 2}));
  EXPECT_EQ(model.count_params(), 13);
  model.save_weights(folder / "weights");
  EXPECT_TRUE(std::filesystem::exists(folder / "weights.index"));
}

// A model of models of which only those are called, as GANs are.
TEST(Sequential, AModelThatIsNeverCalledHasTheWeightsOfItsLayers) {
  class Pair : public Model {
   public:
    Pair() { track("first", first), track("second", second); }
    layers::LayerHandle first = layers::Dense(1, {.name = "first"});
    layers::LayerHandle second = layers::Dense(1, {.name = "second"});
  };
  const auto pair = std::make_shared<Pair>();
  const ModelHandle model = pair;
  pair->first(at::ones({1, 2}));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { model.count_params(); }),
              HasSubstr("count_params"));
  pair->second(at::ones({1, 2}));
  EXPECT_EQ(model.count_params(), 6);
  EXPECT_EQ(model.get_weights().size(), 4U);
}

TEST(Sequential, ListsItsLayers) {
  const Sequential model({Input({2}), layers::Dense(3), layers::Dense(1)});
  for (layers::Layer* layer : model.layers()) layer->set_trainable(false);
  EXPECT_TRUE(model.trainable_variables().empty());
  EXPECT_EQ(model.layers().back()->count_params(), 4);
}

}  // namespace
}  // namespace cohort::keras
