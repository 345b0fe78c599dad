// The names under which checkpoints know what Keras is made of: those that tf.keras 2.15 writes.
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using train::Trackable;

// One line for each object that has children, nearest to the root first: "path: child child ...",
// where "name=path" is an object that has been met under that path before.
std::vector<std::string> graph(const train::TrackableHandle& root) {
  std::vector<std::string> lines;
  std::map<Trackable*, std::string> paths = {{root.get().get(), ""}};
  std::deque<Trackable*> next = {root.get().get()};
  for (; !next.empty(); next.pop_front()) {
    const std::string path = paths[next.front()];
    std::string line;
    for (const train::TrackableChild& child : next.front()->checkpoint_children()) {
      const auto [found, added] = paths.emplace(
          child.object, path.empty() ? child.name : internal::str(path, "/", child.name));
      if (added) next.push_back(child.object);
      line += " " + child.name + (added ? "" : "=" + found->second);
    }
    if (!line.empty()) lines.push_back(internal::str(path, ":", line));
  }
  return lines;
}

Trackable& child(Trackable& parent, const std::string& name) {
  for (const train::TrackableChild& child : parent.checkpoint_children()) {
    if (child.name == name) return *child.object;
  }
  throw NotFoundError(internal::str("no child is called ", name));
}

// A checkpoint that holds one value.
class OneValue : public train::RestoreSource {
 public:
  explicit OneValue(Tensor value) : value_(std::move(value)) {}

  std::optional<std::vector<int64_t>> shape(std::string_view attribute) const override {
    if (attribute != train::kVariableValue) return std::nullopt;
    return value_.sizes().vec();
  }
  bool late() const override { return false; }
  void read(std::string_view, at::IntArrayRef shape, DType dtype, Take take) override {
    if (value_.sizes() != shape || value_.scalar_type() != dtype) {
      throw InvalidArgumentError(internal::str("the checkpoint has ", internal::describe(value_)));
    }
    take(value_);
  }
  void read_slice(std::string_view, at::IntArrayRef, const train::TensorSlice&, DType,
                  Take take) override {
    take(value_);
  }
  StringTensor read_strings(std::string_view) override { return StringTensor({}, {0}); }
  void on_commit(std::function<void()> action) override { action(); }

 private:
  Tensor value_;
};

// The model of the reference checkpoints, after one step.
struct Trained {
  Sequential model =
      Sequential({layers::Conv2D(2, 3, {.activation = "relu"}), layers::MaxPooling2D(),
                  layers::Flatten(), layers::Dropout(0.1), layers::Dense(10)});

  explicit Trained(const optimizers::Optimizer& optimizer) {
    GradientTape tape;
    const Tensor loss = model(at::ones({4, 8, 8, 1}), {.training = true}).square().mean();
    optimizer.minimize(loss, model.trainable_variables(), tape);
  }
};

TEST(CheckpointNames, Sequential) {
  const Trained trained(optimizers::SGD{});
  EXPECT_THAT(
      graph(trained.model),
      ElementsAre(": layer_with_weights-0 layer-0=layer_with_weights-0 layer-1 layer-2 "
                  "layer-3 layer_with_weights-1 layer-4=layer_with_weights-1",
                  "layer_with_weights-0: kernel bias", "layer_with_weights-1: kernel bias"));
}

TEST(CheckpointNames, SequentialCountsNoInput) {
  for (const Sequential& model :
       {Sequential({Input({5}), layers::Dense(2), layers::Dense(1)}),
        Sequential({layers::InputLayer({5}), layers::Dense(2), layers::Dense(1)})}) {
    EXPECT_THAT(graph(model), ElementsAre(": layer_with_weights-0 layer-0=layer_with_weights-0 "
                                          "layer_with_weights-1 layer-1=layer_with_weights-1",
                                          "layer_with_weights-0: kernel bias",
                                          "layer_with_weights-1: kernel bias"));
  }
}

TEST(CheckpointNames, LayersThatAreNotBuiltHaveNoWeightsYet) {
  const Sequential model({layers::Dense(1), layers::Dropout(0.1)});
  EXPECT_THAT(graph(model), ElementsAre(": layer-0 layer-1"));
  model.pop();
  model.add(layers::Dense(2));
  EXPECT_THAT(graph(model), ElementsAre(": layer-0 layer-1"));
}

TEST(CheckpointNames, FunctionalWithBranches) {
  const SymbolicTensor input = Input({4});
  const SymbolicTensor a = layers::Dense(2)(input);
  const SymbolicTensor b = layers::Dense(2)(a);
  const SymbolicTensor c = layers::Dense(2, {.use_bias = false})(input);
  const Functional model(input, layers::Add()({c, b}));
  EXPECT_THAT(graph(model),
              ElementsAre(": layer-0 layer_with_weights-0 layer-1=layer_with_weights-0 "
                          "layer_with_weights-1 layer-2=layer_with_weights-1 "
                          "layer_with_weights-2 layer-3=layer_with_weights-2 layer-4",
                          "layer_with_weights-0: kernel bias", "layer_with_weights-1: kernel",
                          "layer_with_weights-2: kernel bias"));
}

class Block : public Model {
 public:
  Block() {
    track("a", a_);
    track("blocks", blocks_);
    track("d", d_);
  }
  Tensor call(const Tensor& x, const CallOptions&) override {
    Tensor y = a_(x);
    for (const layers::LayerHandle& block : blocks_) y = block(y);
    return y;
  }

 private:
  layers::Dense a_{3};
  std::vector<layers::LayerHandle> blocks_ = {
      layers::Dense(2, {.kernel_regularizer = regularizers::L2(1)}), layers::Dense(2)};
  layers::Flatten d_;
};

class Outer : public Model {
 public:
  Outer() {
    track("inner", inner_);
    track("out", out_);
  }
  Tensor call(const Tensor& x, const CallOptions&) override { return out_(inner_(x)); }

 private:
  Block inner_;
  layers::Dense out_{2};
};

TEST(CheckpointNames, NestedModelsWithAList) {
  const ModelHandle model = std::make_shared<Outer>();
  model(at::ones({2, 3}));
  EXPECT_THAT(graph(model),
              ElementsAre(": inner out", "inner: a blocks d", "out: kernel bias",
                          "inner/a: kernel bias", "inner/blocks: 0 1",
                          "inner/blocks/0: kernel bias", "inner/blocks/1: kernel bias"));
  std::vector<int64_t> sizes;
  for (const Variable& variable : model.trainable_variables()) {
    sizes.push_back(variable.value().numel());
  }
  EXPECT_THAT(sizes, ElementsAre(9, 3, 6, 2, 4, 2, 4, 2));
  EXPECT_EQ(model.losses().size(), 1u);
}

TEST(CheckpointNames, ANameIsTakenOnce) {
  class Twice : public layers::Layer {
   public:
    explicit Twice(bool list) : Layer(layers::LayerOptions{.name = "twice"}) {
      track("part", layers::Flatten());
      if (list) track("part", std::vector<layers::LayerHandle>{layers::Flatten()});
      add_weight("part", {1});
    }
  };
  for (const bool list : {true, false}) {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { Twice{list}; }),
                AllOf(HasSubstr("'twice'"), HasSubstr("'part'")));
  }
}

TEST(CheckpointNames, AFailedBuildLeavesNone) {
  class FailsOnce : public layers::Layer {
    void build(const std::vector<Shape>&) override {
      add_weight("w", {1});
      track("list", std::vector<layers::LayerHandle>{layers::Flatten()});
      if (!std::exchange(failed_, true)) throw UnavailableError("try again");
    }
    Tensor call(const Tensor& x, const CallOptions&) override { return x; }
    bool failed_ = false;
  };
  const layers::LayerHandle layer = std::make_shared<FailsOnce>();
  EXPECT_THROW(layer(at::ones({1})), UnavailableError);
  EXPECT_THAT(graph(layer), IsEmpty());
  layer(at::ones({1}));
  EXPECT_THAT(graph(layer), ElementsAre(": w list", "list: 0"));
}

TEST(CheckpointNames, Embedding) {
  const Sequential model(
      {layers::Embedding(10, 4), layers::GlobalAveragePooling1D(), layers::Dense(2)});
  model(at::ones({2, 3}, at::dtype(int64)));
  EXPECT_THAT(graph(model),
              ElementsAre(": layer_with_weights-0 layer-0=layer_with_weights-0 layer-1 "
                          "layer_with_weights-1 layer-2=layer_with_weights-1",
                          "layer_with_weights-0: embeddings", "layer_with_weights-1: kernel bias"));
}

TEST(CheckpointNames, DropoutWithASeedHasAStreamForEachReplica) {
  EXPECT_THAT(graph(layers::Dropout(0.5)), IsEmpty());
  const auto strategy = distribute::mirrored(3);
  const auto scope = strategy.scope();
  const layers::Dropout dropout(0.5, {.seed = 1});
  EXPECT_THAT(graph(dropout), ElementsAre(": _random_generator"));
  // Whichever replicas draw.
  strategy.run([&](distribute::ReplicaContext& context) {
    if (context.replica_id_in_sync_group() == 1) dropout(at::ones({2}), {.training = true});
  });
  EXPECT_THAT(graph(dropout),
              ElementsAre(": _random_generator", "_random_generator: replica_0 replica_1 replica_2",
                          "_random_generator/replica_0: _state_var",
                          "_random_generator/replica_1: _state_var",
                          "_random_generator/replica_2: _state_var"));
}

TEST(CheckpointNames, Metrics) {
  const metrics::Mean mean;
  EXPECT_THAT(graph(mean), ElementsAre(": total count"));
  EXPECT_THAT(graph(metrics::SparseCategoricalAccuracy()), ElementsAre(": total count"));
  EXPECT_THAT(graph(metrics::Sum()), ElementsAre(": total"));
}

TEST(CheckpointNames, Adam) {
  const optimizers::Adam adam;
  const Trained trained(adam);
  EXPECT_THAT(
      graph(adam),
      ElementsAre(": _variables _iterations _learning_rate _momentums _velocities",
                  "_variables: 0=_iterations 1 2 3 4 5 6 7 8",
                  "_momentums: 0=_variables/1 1=_variables/3 2=_variables/5 3=_variables/7",
                  "_velocities: 0=_variables/2 1=_variables/4 2=_variables/6 3=_variables/8"));
}

TEST(CheckpointNames, AdamWithAmsgrad) {
  const optimizers::Adam adam({.amsgrad = true});
  const Trained trained(adam);
  EXPECT_THAT(
      graph(adam),
      ElementsAre(": _variables _iterations _learning_rate _momentums _velocities _velocity_hats",
                  "_variables: 0=_iterations 1 2 3 4 5 6 7 8 9 10 11 12",
                  "_momentums: 0=_variables/1 1=_variables/3 2=_variables/5 3=_variables/7",
                  "_velocities: 0=_variables/2 1=_variables/4 2=_variables/6 3=_variables/8",
                  "_velocity_hats: 0=_variables/9 1=_variables/10 2=_variables/11 "
                  "3=_variables/12"));
}

TEST(CheckpointNames, SgdHasMomentumsWithoutMomentumToo) {
  for (const double momentum : {0.0, 0.9}) {
    const optimizers::SGD sgd({.momentum = momentum});
    const Trained trained(sgd);
    EXPECT_THAT(
        graph(sgd),
        ElementsAre(": _variables _iterations _learning_rate momentums",
                    "_variables: 0=_iterations 1 2 3 4",
                    "momentums: 0=_variables/1 1=_variables/2 2=_variables/3 3=_variables/4"));
  }
}

TEST(CheckpointNames, RMSprop) {
  const optimizers::RMSprop plain;
  const Trained trained_plain(plain);
  EXPECT_THAT(
      graph(plain),
      ElementsAre(
          ": _variables _iterations _learning_rate _velocities _momentums _average_gradients",
          "_variables: 0=_iterations 1 2 3 4",
          "_velocities: 0=_variables/1 1=_variables/2 2=_variables/3 3=_variables/4"));
  const optimizers::RMSprop all({.momentum = 0.9, .centered = true});
  const Trained trained_all(all);
  EXPECT_THAT(
      graph(all),
      ElementsAre(
          ": _variables _iterations _learning_rate _velocities _momentums _average_gradients",
          "_variables: 0=_iterations 1 2 3 4 5 6 7 8 9 10 11 12",
          "_velocities: 0=_variables/1 1=_variables/2 2=_variables/3 3=_variables/4",
          "_momentums: 0=_variables/5 1=_variables/6 2=_variables/7 3=_variables/8",
          "_average_gradients: 0=_variables/9 1=_variables/10 2=_variables/11 3=_variables/12"));
}

TEST(CheckpointNames, ScheduledLearningRate) {
  const optimizers::Adam adam({.learning_rate = optim::PiecewiseConstantDecay({0}, {0.5, 0.25})});
  EXPECT_THAT(graph(adam),
              ElementsAre(": _variables _iterations _current_learning_rate _momentums _velocities",
                          "_variables: 0=_iterations"));
  const Trained trained(adam);
  const auto optimizer = adam.trackable();
  Trackable& rate = child(*optimizer, "_current_learning_rate");
  EXPECT_EQ(rate.checkpoint_values().at(0).parts.at(0).value.tensor().item<float>(), 0.25);
  OneValue saved(at::scalar_tensor(9, float32));
  rate.prepare_restore(saved);
  EXPECT_EQ(adam.learning_rate(), 0.25);
}

TEST(CheckpointNames, VariablesThatComeLaterFollowInTheLists) {
  const Variable a(at::ones({1}), {.name = "a"});
  const Variable b(at::ones({1}), {.name = "b"});
  const optimizers::RMSprop optimizer({.momentum = 0.5});
  optimizer.build({a});
  optimizer.build({b, a});
  EXPECT_THAT(
      graph(optimizer),
      ElementsAre(
          ": _variables _iterations _learning_rate _velocities _momentums _average_gradients",
          "_variables: 0=_iterations 1 2 3 4", "_velocities: 0=_variables/1 1=_variables/3",
          "_momentums: 0=_variables/2 1=_variables/4"));
}

TEST(CheckpointNames, AnOptimizerWithoutVariablesHasItsIterations) {
  const optimizers::Adam adam;
  EXPECT_THAT(graph(adam),
              ElementsAre(": _variables _iterations _learning_rate _momentums _velocities",
                          "_variables: 0=_iterations"));
  EXPECT_EQ(adam.iterations().value().item<int64_t>(), 0);
}

TEST(CheckpointNames, LearningRateComesBackAsItWas) {
  const optimizers::SGD sgd({.learning_rate = 0.1});
  const auto optimizer = sgd.trackable();
  Trackable& rate = child(*optimizer, "_learning_rate");
  const auto values = rate.checkpoint_values();
  EXPECT_EQ(values.at(0).full_name, "learning_rate");
  const Tensor saved = values.at(0).parts.at(0).value.tensor();
  EXPECT_EQ(saved.scalar_type(), float32);
  EXPECT_EQ(saved.dim(), 0);
  sgd.set_learning_rate(0.5);
  OneValue source(saved);
  rate.prepare_restore(source);
  EXPECT_EQ(sgd.learning_rate(), static_cast<double>(0.1f));

  const Float64 wide;
  EXPECT_EQ(optimizers::SGD({.learning_rate = 0.1}).learning_rate(), 0.1);
}

TEST(CheckpointNames, MomentumsThatAreNotKeptAreZeros) {
  const optimizers::SGD sgd;
  const Variable w(at::ones({2, 3}), {.name = "w"});
  sgd.build({w});
  const auto optimizer = sgd.trackable();
  Trackable& momentum = child(child(*optimizer, "momentums"), "0");
  const auto values = momentum.checkpoint_values();
  EXPECT_EQ(values.at(0).full_name, "SGD/m/w");
  const Tensor zeros = values.at(0).parts.at(0).value.tensor();
  EXPECT_THAT(zeros.sizes(), ElementsAre(2, 3));
  EXPECT_EQ(zeros.abs().sum().item<double>(), 0);
  OneValue right(at::ones({2, 3}));
  momentum.prepare_restore(right);
  OneValue wrong(at::ones({3}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { momentum.prepare_restore(wrong); }),
              HasSubstr("[3]"));
  EXPECT_EQ(sgd.variables().size(), 1u);
}

}  // namespace
}  // namespace cohort::keras
