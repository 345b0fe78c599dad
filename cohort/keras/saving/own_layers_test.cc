// Layers of the program in what is saved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/saving/saved_model.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras {
namespace {

using models::clone_model;
using models::layer_from_config;
using models::model_from_json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// As docs/fit.md has it: its configuration knows nothing of names.
class Scale : public layers::Layer {
 public:
  explicit Scale(double factor, const layers::LayerOptions& options = {})
      : Layer(options), factor_(factor) {}
  std::optional<Config> get_config() const override { return Config().set("factor", factor_); }

 protected:
  void build(const std::vector<Shape>&) override {
    weight_ = add_weight("weight", {}, {.initializer = "ones"});
  }
  Tensor call(const Tensor& x, const CallOptions&) override {
    return x * factor_ * weight_.value();
  }

 private:
  double factor_;
  Variable weight_;
};

// A model with a layer inside.
class Block : public Model {
 public:
  explicit Block(const layers::LayerOptions& options = {}) : Model(options) {
    track("normalization", normalization);
  }
  std::optional<Config> get_config() const override { return Config(); }

  layers::LayerHandle normalization = layers::BatchNormalization();

 protected:
  Tensor call(const Tensor& x, const CallOptions&) override { return normalization(x); }
};

const models::CustomObjects& own_classes() {
  static const models::CustomObjects classes = {
      {"Scale",
       [](const Config& config) { return std::make_shared<Scale>(config.get_double("factor")); }},
      {"Block", [](const Config&) { return std::make_shared<Block>(); }}};
  return classes;
}

std::shared_ptr<Scale> scale(const std::string& name, bool trainable = true) {
  return std::make_shared<Scale>(2, layers::LayerOptions{.name = name, .trainable = trainable});
}

TEST(OwnLayer, KeepsItsNameAndWhetherItIsTrained) {
  const Sequential inner({scale("inside", false)}, {.name = "inner"});
  const SymbolicTensor x = Input({2}, {.name = "x"});
  const auto block = std::make_shared<Block>(layers::LayerOptions{.name = "block"});
  block->set_trainable(false);
  const layers::LayerHandle own = scale("own", false), trained = scale("trained");
  const Functional model(x, layers::LayerHandle(block)(inner(own(trained(x)))), {.name = "whole"});
  const ModelHandle copy = clone_model(model, own_classes());
  EXPECT_EQ(copy.to_json(), model.to_json());
  EXPECT_EQ(copy.layer_names(), model.layer_names());
  EXPECT_FALSE(copy.get_layer("own").trainable());
  EXPECT_TRUE(copy.get_layer("trained").trainable());
  EXPECT_FALSE(copy.get_layer("inner").children()[0].layer->trainable());
  // Down to those that no file names.
  EXPECT_FALSE(static_cast<Block&>(copy.get_layer("block")).normalization.trainable());
  EXPECT_EQ(copy.trainable_variables().size(), 1u);
  EXPECT_EQ(copy.trainable_variables()[0].name(), "trained/weight");
}

TEST(OwnLayer, KeepsItsDtype) {
  const Sequential model(
      {Input({2}, {.name = "x"}),
       std::make_shared<Scale>(2, layers::LayerOptions{.name = "wide", .dtype = float64}),
       scale("usual")});
  EXPECT_THAT(model.to_json(),
              AllOf(HasSubstr(R"({"dtype":"float64","factor":2.0,"name":"wide")"),
                    HasSubstr(R"({"dtype":"float32","factor":2.0,"name":"usual")")));
  const ModelHandle copy = clone_model(model, own_classes());
  EXPECT_EQ(copy.get_layer("wide").dtype(), float64);
  EXPECT_EQ(copy.get_layer("wide").variables()[0].dtype(), float64);
  EXPECT_EQ(copy.get_layer("usual").variables()[0].dtype(), float32);
  // A model of the program has one, too; Keras's have it in their layers.
  const ModelHandle block =
      std::make_shared<Block>(layers::LayerOptions{.name = "block", .dtype = float64});
  EXPECT_EQ(block.get_config()->get_string("dtype"), "float64");
  EXPECT_EQ(clone_model(block, own_classes())->dtype(), float64);
  EXPECT_FALSE(model.get_config()->contains("dtype"));
}

// What Keras's own class with numbers of another kind has written says nothing of weights.
TEST(OwnLayer, TakesNoDtypeThatWeightsCannotHave) {
  const Config config = Config().set("factor", 2.).set("dtype", "int64");
  EXPECT_EQ(layer_from_config("Scale", config, own_classes())->dtype(), float32);
}

TEST(OwnLayer, OfASavedModelIsTrainedAsItWas) {
  internal::SimulatedFileSystem files;
  const Sequential model({Input({1}, {.name = "x"}), scale("frozen", false), scale("trained")});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  internal::save_model(model, "model", {}, files);
  const ModelHandle again = internal::load_model("model", {.custom_objects = own_classes()}, files);
  const Tensor x = numbers({1, 2}, {2, 1});
  again.fit(x, x, {.verbose = 0});
  EXPECT_EQ(elements(again.get_layer("frozen").variables()[0].value()), (std::vector<double>{1}));
  EXPECT_NE(elements(again.get_layer("trained").variables()[0].value()), (std::vector<double>{1}));
}

TEST(OwnLayer, MayBeAModel) {
  const ModelHandle block =
      std::make_shared<Block>(layers::LayerOptions{.name = "own_block", .trainable = false});
  const ModelHandle copy = clone_model(block, own_classes());
  EXPECT_EQ(copy.name(), "own_block");
  EXPECT_FALSE(copy.trainable());
}

TEST(OwnLayer, TakesWhatItsHandleSays) {
  const layers::LayerHandle layer = scale("mine", false);
  const Config config = *layer.get_config();
  EXPECT_EQ(config.json(), R"({"dtype":"float32","factor":2.0,"name":"mine","trainable":false})");
  const layers::LayerHandle again = layer_from_config("Scale", config, own_classes());
  EXPECT_EQ(*again.get_config(), config);
  // Thawed after its constructor has frozen it.
  const models::CustomObjects frozen = {
      {"Scale", [](const Config&) { return scale("frozen", false); }}};
  EXPECT_TRUE(layer_from_config("Scale", Config().set("trainable", true), frozen).trainable());
  EXPECT_FALSE(layer_from_config("Scale", Config().set("factor", 2.), frozen).trainable());
}

// Keras's forms: tests/interop reads them with Keras.
TEST(OwnLayer, AModelsFormIsThatOfKeras) {
  const Sequential model({Input({1}, {.name = "x"}), layers::Flatten({.name = "f"})},
                         {.name = "m"});
  EXPECT_THAT(model.to_json(), AllOf(HasSubstr(R"("name":"m"},)"),
                                     HasSubstr(R"("name":"x","ragged":false,"sparse":false},)")));
  model.set_trainable(false);
  const ModelHandle copy = model_from_json(model.to_json());
  EXPECT_FALSE(copy.trainable());
  EXPECT_EQ(copy.to_json(), model.to_json());
}

TEST(OwnLayer, LayersOfAFrozenModelSayThemselvesWhetherTheyAreTrained) {
  const SymbolicTensor x = Input({2}, {.name = "x"});
  const layers::BatchNormalization moves({.name = "moves"});
  const Functional model(x, layers::Dense(1, {.name = "d"})(moves(x)), {.name = "m"});
  model.set_trainable(false);
  moves.set_trainable(true);
  const ModelHandle copy = clone_model(model);
  EXPECT_FALSE(copy.trainable());
  EXPECT_TRUE(copy.get_layer("moves").trainable());
  EXPECT_FALSE(copy.get_layer("d").trainable());
  EXPECT_EQ(copy.to_json(), model.to_json());
}

class Says : public layers::Layer {
 public:
  Says(Config config, const std::string& name) : Layer({.name = name}), config_(config) {}
  std::optional<Config> get_config() const override { return config_; }

 protected:
  Tensor call(const Tensor& x, const CallOptions&) override { return x; }

 private:
  Config config_;
};

TEST(OwnLayer, StaysOneWhereModelsShareIt) {
  const layers::LayerHandle shared = scale("shared"), twice = layers::Dense(2, {.name = "twice"});
  const Sequential left({shared, twice}, {.name = "left"});
  const Sequential right({layers::Flatten({.name = "f"}), shared}, {.name = "right"});
  const Sequential around({left}, {.name = "around"});
  const SymbolicTensor x = Input({2}, {.name = "x"});
  const Functional model(
      x, layers::Add({.name = "sum"})({around(x), right(twice(x)), left(shared(x))}),
      {.name = "m"});
  const ModelHandle copy = clone_model(model, own_classes());
  EXPECT_EQ(copy.to_json(), model.to_json());
  ASSERT_EQ(copy.variables().size(), model.variables().size());
  copy.set_weights(model.get_weights());
  for (const Variable& variable : copy.variables()) variable.assign(variable.value() * 2);
  for (const Variable& variable : model.variables()) variable.assign(variable.value() * 2);
  const Tensor input = numbers({1, 2}, {1, 2});
  EXPECT_EQ(elements(copy(input)), elements(model(input)));
  const ModelHandle again = model_from_json(copy.to_json(), own_classes());
  EXPECT_EQ(again.variables().size(), model.variables().size());
  // One that stands in one place has no number.
  EXPECT_EQ(left.to_json().find("shared_object_id"), std::string::npos);
}

TEST(OwnLayer, LeavesTheNamesOfWhatAllHaveToThem) {
  const auto json_of = [](const Config& config) {
    return Sequential({std::make_shared<Says>(config, "one")}).to_json();
  };
  EXPECT_THAT(json_of(Config().set("name", "")), HasSubstr(R"("name":"one")"));
  EXPECT_THAT(json_of(Config().set("trainable", false)), HasSubstr(R"("trainable":true)"));
  const auto refused = [&](const Config& config) {
    return thrown<InvalidArgumentError>([&] { json_of(config); });
  };
  EXPECT_THAT(
      refused(Config().set("name", "column_3")),
      AllOf(HasSubstr("'one' (Says)"), HasSubstr("\"column_3\""), HasSubstr("another key")));
  EXPECT_THAT(refused(Config().set("name", 3)), HasSubstr("'one' (Says)"));
  EXPECT_THAT(json_of(Config().set("dtype", "float32")), HasSubstr(R"("dtype":"float32")"));
  EXPECT_THAT(refused(Config().set("dtype", "float16")),
              AllOf(HasSubstr("'one' (Says)"), HasSubstr("\"float16\""), HasSubstr("'float32'"),
                    HasSubstr("another key")));
  EXPECT_THAT(refused(Config().set("trainable", "partly")),
              AllOf(HasSubstr("'one' (Says)"), HasSubstr("\"partly\""), HasSubstr("another key")));
}

TEST(OwnLayer, ThatThrowsIsNamed) {
  class Throws : public layers::Layer {
   public:
    Throws() : Layer({.name = "thrower"}) {}
    std::optional<Config> get_config() const override { throw std::runtime_error("too hot"); }
  };
  const Sequential model({std::make_shared<Throws>()});
  EXPECT_THAT(thrown<UnknownError>([&] { model.to_json(); }),
              AllOf(HasSubstr("'thrower' (Throws)"), HasSubstr("too hot")));
}

TEST(OwnLayer, AnEmptyFunctionIsNamed) {
  const Sequential model({scale("own")}, {.name = "m"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                clone_model(model, {{"Scale", {}}});
              }),
              AllOf(StartsWith("model_from_json: Sequential: layers[0]: layer 'own' (Scale): "),
                    HasSubstr(".custom_objects"), HasSubstr("empty")));
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] {
        clone_model(model, {{"Scale", [](const Config&) { return std::shared_ptr<Scale>(); }}});
      }),
      HasSubstr("'own' (Scale)"));
}

TEST(OwnLayer, IsMadeAnewEachTime) {
  const Sequential model({scale("a"), scale("b")});
  const layers::LayerHandle one = scale("one");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                clone_model(model, {{"Scale", [&](const Config&) { return one; }}});
              }),
              AllOf(HasSubstr("layer 'b' (Scale)"), HasSubstr("gave the layer 'a'"),
                    HasSubstr("make a new layer each time")));
  const Sequential other({one});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model_from_json(Sequential({scale("c")}).to_json(),
                                {{"Scale", [&](const Config&) { return one; }}});
              }),
              HasSubstr("is in use already"));
  EXPECT_EQ(one.name(), "a");
}

TEST(OwnLayer, DamagedFormsAreNamed) {
  const auto refused = [](const std::string& fields) {
    return thrown<InvalidArgumentError>([&] {
      model_from_json(R"({"class_name": "Sequential", "config": {"layers": [{"class_name": "Scale",
                          "config": {"factor": 2, )" +
                          fields + "}}]}}",
                      own_classes());
    });
  };
  EXPECT_THAT(refused(R"("name": 3)"), AllOf(HasSubstr("(Scale)"), HasSubstr("'name'")));
  EXPECT_THAT(refused(R"("trainable": "no")"),
              AllOf(HasSubstr("(Scale)"), HasSubstr("'trainable'")));
}

}  // namespace
}  // namespace cohort::keras
