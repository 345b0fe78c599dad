#include "cohort/keras/torch_model.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/program/task.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/keras/testing_training.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras {
namespace {

using distribute::mirrored;
using distribute::PerReplica;
using distribute::ReplicaContext;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::SizeIs;

struct NetImpl : torch::nn::Module {
  NetImpl()
      : conv(register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 3, 3)))),
        linear(register_module("linear", torch::nn::Linear(3 * 6 * 6, 3))) {
    to(internal::keras_floatx());
    // libtorch's own initial values come from its global generator; these depend on our seed.
    for (Tensor& parameter : parameters()) {
      const at::NoGradGuard no_grad;
      parameter.copy_(random::normal(parameter.sizes(), {.stddev = 0.2, .dtype = float64}));
    }
  }
  Tensor forward(const Tensor& images) {
    return linear(conv(images.permute({0, 3, 1, 2})).relu().flatten(1));
  }
  torch::nn::Conv2d conv;
  torch::nn::Linear linear;
};
TORCH_MODULE(Net);

TEST(TorchModel, NamesItsVariablesAfterTheParameters) {
  const TorchModel model([] { return Net(); });
  std::vector<std::string> names;
  for (const Variable& variable : model.trainable_variables()) names.push_back(variable.name());
  EXPECT_THAT(names, ElementsAre("conv.weight", "conv.bias", "linear.weight", "linear.bias"));
  EXPECT_THAT(model(at::ones({2, 8, 8, 1})).sizes(), ElementsAre(2, 3));
}

struct NormalizedImpl : torch::nn::Module {
  NormalizedImpl()
      : norm(register_module("norm", torch::nn::BatchNorm1d(2))),
        linear(register_module("linear", torch::nn::Linear(2, 1))) {}
  Tensor forward(const Tensor& x) { return linear(norm(x)); }
  torch::nn::BatchNorm1d norm;
  torch::nn::Linear linear;
};
TORCH_MODULE(Normalized);

TEST(TorchModel, GivesItsWeightsBackToAModule) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const TorchModel model([] { return Normalized(); });
  strategy.run([&](ReplicaContext& context) {  // moves the averages, of each replica on its own
    const int64_t id = context.replica_id_in_sync_group();
    model(at::arange(6, at::kFloat).reshape({3, 2}) * (id + 1), {.training = true});
  });
  Normalized module;
  model.copy_to(module);
  std::map<std::string, Tensor> written;
  for (const auto& item : module->named_parameters()) written[item.key()] = item.value();
  for (const auto& item : module->named_buffers()) written[item.key()] = item.value();
  ASSERT_EQ(model.variables().size(), written.size());
  for (const Variable& variable : model.variables()) {
    EXPECT_TRUE(at::equal(variable.value(), written.at(variable.name()))) << variable.name();
  }
  EXPECT_THAT(elements(module->norm->running_mean),
              ElementsAre(DoubleNear(0.3, 1e-6), DoubleNear(0.45, 1e-6)));
  EXPECT_EQ(module->norm->num_batches_tracked.item<int64_t>(), 1);
  EXPECT_TRUE(module->linear->weight.requires_grad());
}

TEST(TorchModel, GivesNothingToAnotherModule) {
  const TorchModel model([] { return Normalized(); });
  torch::nn::Linear other(2, 1);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.copy_to(other); }),
              HasSubstr("a parameter 'weight', which model"));
  torch::nn::Sequential wider(torch::nn::Linear(3, 1));
  const TorchModel narrow([] { return torch::nn::Sequential(torch::nn::Linear(2, 1)); });
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { narrow.copy_to(wider); }),
              AllOf(HasSubstr("[1,3]"), HasSubstr("[1,2]")));
}

TEST(TorchModel, BelongsToTheTaskThatMadeIt) {
  const auto strategy = mirrored(2);
  const auto made_by = [&](int index) {
    const internal::ScopedTask as_worker(internal::Task::named("worker", index));
    const auto scope = strategy.scope();
    return TorchModel([] { return Net(); });
  };
  const TorchModel models[] = {made_by(0), made_by(1)};
  const internal::ScopedTask as_worker(internal::Task::named("worker", 1));
  strategy.run([&] { EXPECT_THAT(models[1](at::ones({2, 8, 8, 1})).sizes(), ElementsAre(2, 3)); });
  try {
    strategy.run([&] { models[0](at::ones({2, 8, 8, 1})); });
    ADD_FAILURE() << "another task's model was called";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("belongs to /job:worker/task:0"));
  }
}

TEST(TorchModel, GoesThroughCheckpoints) {
  internal::SimulatedFileSystem files;
  const auto strategy = mirrored(2);
  auto scope = strategy.scope();
  const TorchModel saved([] { return Net(); });
  const TorchModel restored([] { return Net(); });
  scope.close();
  for (const TorchModel* model : {&saved, &restored}) {
    train::Checkpoint checkpoint({{"model", *model}});
    internal::use_file_system(checkpoint, files);
    if (model == &saved) {
      checkpoint.write("dir/ckpt");
    } else {
      checkpoint.read("dir/ckpt").assert_consumed();
    }
  }
  const Tensor input = at::ones({3, 8, 8, 1});
  EXPECT_TRUE(restored(input).equal(saved(input)));
}

TEST(TorchModel, FollowsOneLossCurveOnAnyNumberOfReplicas) {
  const auto make = []() -> ModelHandle { return TorchModel([] { return Net(); }); };
  for (const distribute::Storage storage : distribute::kStorages) {
    const auto one = train({.replicas = 1, .storage = storage}, make);
    EXPECT_LT(one.losses.back(), one.losses.front());
    for (const int replicas : {2, 4}) {
      const auto several = train({.replicas = replicas, .storage = storage}, make);
      EXPECT_THAT(curve_difference(one.losses, several.losses), Lt(1e-9)) << replicas;
      EXPECT_TRUE(several.components_equal);
    }
  }
}

TEST(TorchModel, TrainsOutsideOfAnyStrategy) {
  const TorchModel model([] { return std::make_shared<torch::nn::LinearImpl>(2, 1); });
  const optimizers::SGD sgd({.learning_rate = 0.01});
  const Tensor x = numbers({1, 2, 3, 4}, {2, 2});
  double before = 0;
  double after = 0;
  for (int step = 0; step < 20; ++step) {
    GradientTape tape;
    const Tensor loss = model(x, {.training = true}).square().mean();
    sgd.minimize(loss, model.trainable_variables(), tape);
    (step == 0 ? before : after) = loss.item<double>();
  }
  EXPECT_LT(after, before);
}

TEST(TorchModel, ModulesSeeWhatIsAssigned) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  std::vector<std::shared_ptr<torch::nn::LinearImpl>> modules;
  const TorchModel model([&] {
    modules.push_back(std::make_shared<torch::nn::LinearImpl>(2, 1));
    return modules.back();
  });
  ASSERT_THAT(modules, SizeIs(2));
  EXPECT_TRUE(modules[0]->weight.equal(modules[1]->weight));
  model.variables()[0].assign(numbers({5, 6}, {1, 2}));
  EXPECT_THAT(elements(modules[0]->weight), ElementsAre(5, 6));
  EXPECT_THAT(elements(modules[1]->weight), ElementsAre(5, 6));
}

TEST(TorchModel, EachReplicaRunsItsOwnModuleInItsOwnMode) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const TorchModel model([] { return torch::nn::Dropout(0.5); });
  const auto outputs = strategy.run([&](ReplicaContext& context) {
    const bool training = context.replica_id_in_sync_group() == 0;
    return model(at::ones({1000}), {.training = training});
  });
  EXPECT_GT((outputs.value(0) == 0).sum().item<int64_t>(), 300);
  EXPECT_EQ((outputs.value(1) == 0).sum().item<int64_t>(), 0);
}

TEST(TorchModel, BuffersArePerReplicaAndAveragedWhenRead) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const TorchModel model(
      [] { return torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(1).momentum(1.0)); });
  EXPECT_THAT(model.trainable_variables(), SizeIs(2));
  ASSERT_THAT(model.non_trainable_variables(), SizeIs(3));
  const Variable mean = model.non_trainable_variables()[0];
  EXPECT_EQ(mean.name(), "running_mean");
  strategy.run([&](const Tensor& x) { model(x, {.training = true}); },
               PerReplica<Tensor>{numbers({1, 3}, {2, 1}), numbers({7, 9}, {2, 1})});
  EXPECT_THAT(elements(mean.components().value(0)), ElementsAre(2));
  EXPECT_THAT(elements(mean.components().value(1)), ElementsAre(8));
  EXPECT_THAT(elements(mean.value()), ElementsAre(5));
  const Variable batches = model.non_trainable_variables()[2];
  EXPECT_EQ(batches.value().item<int64_t>(), 1);
}

TEST(TorchModel, AFrozenModulesAveragesStay) {
  const TorchModel model(
      [] { return torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(1).momentum(1.0)); });
  model.set_trainable(false);
  model(numbers({1, 3}, {2, 1}), {.training = true});
  EXPECT_THAT(elements(model.non_trainable_variables()[2].value()), ElementsAre(0));
  model.set_trainable(true);
  model(numbers({1, 3}, {2, 1}), {.training = true});
  EXPECT_THAT(elements(model.non_trainable_variables()[0].value()), ElementsAre(2));
}

struct CentredImpl : torch::nn::Module {
  Tensor forward(Tensor x) {
    if (!skips || !std::exchange(first, false)) x.sub_(x.mean());
    return x;
  }
  bool skips = false;
  bool first = true;
};

TEST(TorchModel, WritesOfForwardLeaveTheCallersTensorsAlone) {
  const TorchModel model([] { return std::make_shared<CentredImpl>(); });
  const Tensor x = numbers({1, 3}, {2, 1});
  for (int call = 0; call < 3; ++call) {
    EXPECT_THAT(elements(model(x)), ElementsAre(-1, 1));
    EXPECT_THAT(elements(x), ElementsAre(1, 3));
  }
  const TorchModel later([] {
    auto module = std::make_shared<CentredImpl>();
    module->skips = true;
    return module;
  });
  later(x);
  EXPECT_THAT([&] { later(x); }, ::testing::ThrowsMessage<InvalidArgumentError>(
                                     HasSubstr("has written into its input")));
}

struct TwoInputsImpl : torch::nn::Module {
  Tensor forward(const Tensor& a, const Tensor& b) { return a + 10 * b; }
};
struct TwoOutputsImpl : torch::nn::Module {
  std::tuple<Tensor, Tensor> forward(Tensor x) { return {x, x * 2}; }
};
struct WholeStructureImpl : torch::nn::Module {
  Structure forward(const Structure& x) { return dict({{"y", x["x"].tensor() + 1}}); }
};

// Its buffer counts the calls, in training or not.
struct CountedImpl : torch::nn::Module {
  CountedImpl()
      : norm(register_module("norm", torch::nn::BatchNorm1d(2))),
        calls(register_buffer("calls", at::zeros({}, at::kLong))) {}
  Tensor forward(const Tensor& x) {
    calls.add_(1);
    return norm(x.reshape({-1, 2, 1}).repeat({1, 1, 2}));  // of one row, too
  }
  torch::nn::BatchNorm1d norm;
  Tensor calls;
};
TORCH_MODULE(Counted);

TEST(TorchModel, SymbolicCallsLeaveItsBuffersAsTheyWere) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const TorchModel model([] { return Counted(); });
  const Tensor x = at::arange(6, at::kFloat).reshape({3, 2});
  strategy.run([&] { model(x, {.training = true}); });
  const std::vector<Tensor> before = model.get_weights();
  EXPECT_EQ(before.size(), 6u);
  const SymbolicTensor input = Input({2});
  model(input, {.training = true});
  const Functional whole(input, model(input));
  EXPECT_ANY_THROW(model(Input({3})));
  const std::vector<Tensor> after = model.get_weights();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(after[i], before[i])) << i;
  strategy.run([&] { whole(x, {.training = true}); });
  EXPECT_FALSE(at::equal(model.get_weights()[2], before[2]));  // the calls
}

TEST(TorchModel, ForwardTakesAndReturnsSeveralTensors) {
  const TorchModel two([] { return std::make_shared<TwoInputsImpl>(); }, {.name = "two"});
  EXPECT_THAT(elements(two(tuple(numbers({1}), numbers({2})))), ElementsAre(21));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { two(at::ones({1})); }), HasSubstr("2 tensors"));

  const TorchModel outputs([] { return std::make_shared<TwoOutputsImpl>(); });
  const auto [first, second] = outputs(Structure(numbers({3})));
  EXPECT_THAT(elements(second), ElementsAre(6));

  const TorchModel whole([] { return std::make_shared<WholeStructureImpl>(); });
  EXPECT_THAT(elements(whole(dict({{"x", numbers({1})}}))["y"].tensor()), ElementsAre(2));
}

TEST(TorchModel, TakesAContainerOfModules) {
  const TorchModel model(
      [] { return torch::nn::Sequential(torch::nn::Linear(2, 3), torch::nn::Linear(3, 1)); });
  EXPECT_THAT(model.variables(), SizeIs(4));
  EXPECT_THAT(model(at::ones({5, 2})).sizes(), ElementsAre(5, 1));
}

struct TiedImpl : torch::nn::Module {
  TiedImpl() : first(register_module("first", torch::nn::Linear(2, 2))) {
    register_module("second", first);
  }
  Tensor forward(const Tensor& x) { return first(first(x)); }
  torch::nn::Linear first;
};

TEST(TorchModel, SharedParametersCountOnce) {
  const TorchModel model([] { return std::make_shared<TiedImpl>(); });
  EXPECT_THAT(model.variables(), SizeIs(2));
}

struct SharedBufferImpl : torch::nn::Module {
  explicit SharedBufferImpl(bool shared = true) {
    scale = register_buffer("scale", at::ones({1}));
    factor = register_buffer("factor", shared ? scale : at::ones({1}));
    weight = register_parameter("weight", at::ones({1}), /*requires_grad=*/false);
    register_buffer("also_weight", weight);
  }
  Tensor forward(const Tensor& x) { return x * scale + factor + weight; }
  Tensor scale;
  Tensor factor;
  Tensor weight;
};

TEST(TorchModel, ABufferWithSeveralNamesIsOneVariable) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const TorchModel model([] { return std::make_shared<SharedBufferImpl>(); });
  ASSERT_THAT(model.variables(), SizeIs(2));
  EXPECT_EQ(model.variables()[0].name(), "weight");
  EXPECT_EQ(model.variables()[1].name(), "scale");
  model.variables()[0].assign(numbers({100}));
  model.variables()[1].assign(numbers({2}));
  const auto results = strategy.run([&] { return model(numbers({10})); });
  EXPECT_THAT(elements(results.value(0)), ElementsAre(122));
  EXPECT_THAT(elements(results.value(1)), ElementsAre(122));
}

TEST(TorchModel, CheckpointsKnowItsVariablesByAllTheirNames) {
  const TorchModel tied([] { return std::make_shared<TiedImpl>(); });
  std::vector<std::string> names;
  std::vector<const train::Trackable*> objects;
  for (const train::TrackableChild& child : tied.trackable()->checkpoint_children()) {
    names.push_back(child.name);
    objects.push_back(child.object);
  }
  EXPECT_THAT(names, ElementsAre("first.weight", "first.bias", "second.weight", "second.bias"));
  EXPECT_EQ(objects[0], objects[2]);
  EXPECT_EQ(objects[1], objects[3]);
  EXPECT_NE(objects[0], objects[1]);

  names.clear();
  const TorchModel norm([] { return torch::nn::BatchNorm1d(2); });
  for (const train::TrackableChild& child : norm.trackable()->checkpoint_children()) {
    names.push_back(child.name);
  }
  EXPECT_THAT(names,
              ElementsAre("weight", "bias", "running_mean", "running_var", "num_batches_tracked"));
}

TEST(TorchModel, ModulesThatShareDifferentTensorsAreRefused) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  bool shared = false;
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                TorchModel([&] {
                  shared = !shared;
                  return std::make_shared<SharedBufferImpl>(shared);
                });
              }),
              AllOf(HasSubstr("'factor'"), HasSubstr("shared with 'scale'")));
}

TEST(TorchModel, AFactoryThatGivesOneModuleTwiceIsRefused) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const torch::nn::Linear net(2, 1);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { TorchModel([&] { return net; }); }),
              AllOf(HasSubstr("'weight' of replica 1"), HasSubstr("a new module each time")));
  const torch::nn::BatchNorm1d norm(
      torch::nn::BatchNorm1dOptions(2).affine(false));  // which has buffers alone
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { TorchModel([&] { return norm; }); }),
              HasSubstr("'running_mean' of replica 1"));
}

TEST(TorchModel, FrozenParametersAreNotTrainable) {
  const TorchModel model([] {
    torch::nn::Linear linear(2, 1);
    linear->bias.set_requires_grad(false);
    return linear;
  });
  EXPECT_THAT(model.trainable_variables(), SizeIs(1));
  EXPECT_THAT(model.non_trainable_variables(), SizeIs(1));
}

TEST(TorchModel, ErrorsNameLayerShapesAndDifferences) {
  const TorchModel model([] { return torch::nn::Linear(2, 1); }, {.name = "net"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(at::ones({1, 3}));
              }),
              AllOf(HasSubstr("'net'"), HasSubstr("[1,3]")));
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  int units = 0;
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { TorchModel([&] { return torch::nn::Linear(2, ++units); }); }),
              AllOf(HasSubstr("'weight'"), HasSubstr("[1,2]"), HasSubstr("[2,2]")));
}

TEST(TorchModel, IsMadeUnderTheScope) {
  const auto strategy = mirrored(2);
  const TorchModel outside([] { return torch::nn::Linear(2, 1); });
  EXPECT_THAT(thrown<FailedPreconditionError>([&] {
                strategy.run([&] { outside(at::ones({1, 2})); });
              }),
              HasSubstr("scope"));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] {
                strategy.run([&] { TorchModel([] { return torch::nn::Linear(2, 1); }); });
              }),
              HasSubstr("scope"));
}

}  // namespace
}  // namespace cohort::keras
