// Layers and models in a step of several replicas.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <vector>

#include "cohort/core/program/task.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/random.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::keras {
namespace {

using distribute::mirrored;
using distribute::MirroredStrategy;
using distribute::PerReplica;
using distribute::ReplicaContext;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

Sequential small_model() {
  return Sequential({layers::Conv2D(2, 3, {.activation = "relu"}), layers::MaxPooling2D(),
                     layers::Flatten(), layers::Dense(3)});
}

TEST(StepErrorOfLayers, NamesTheReplicaAndTheLayer) {
  class Product : public layers::Layer {
    Tensor call(const Tensor& x, const CallOptions&) override { return x.matmul(at::ones({3})); }
  };
  const MirroredStrategy strategy = mirrored(2);
  const layers::LayerHandle product = std::make_shared<Product>();
  try {
    strategy.run([&](ReplicaContext& context) {
      product(at::ones({2, 3 - context.replica_id_in_sync_group()}));
    });
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("replica 1: layer 'product' failed on "),
                                    Not(HasSubstr("frame #"))));
  }
}

TEST(LazyBuilding, MakesOneSetOfVariables) {
  for (const bool shared : {true, false}) {
    const MirroredStrategy strategy = mirrored(4, {.shared_storage = shared});
    Sequential model;
    {
      const auto scope = strategy.scope();
      model = small_model();
    }
    const auto counts = strategy.run([&] {
      model(at::ones({2, 8, 8, 1}), {.training = true});
      return static_cast<int64_t>(model.trainable_variables().size());
    });
    EXPECT_THAT(std::vector<int64_t>(counts.values().begin(), counts.values().end()), Each(4));
    ASSERT_THAT(model.variables(), SizeIs(4));
    for (const Variable& variable : model.variables()) {
      const auto components = variable.components();
      ASSERT_EQ(components.size(), 4u);
      for (const Tensor& one : components.values()) {
        EXPECT_EQ(elements(one), elements(components.value(0)));
      }
    }
  }
}

TEST(LazyBuilding, EmptyAndPartialBatchesBuild) {
  const MirroredStrategy strategy = mirrored(2);
  const Sequential model = small_model();
  strategy.run([&](const Tensor& images) { model(images); },
               PerReplica<Tensor>{at::ones({0, 8, 8, 1}), at::ones({1, 8, 8, 1})});
  EXPECT_THAT(model.variables(), SizeIs(4));
}

TEST(LazyBuilding, OutsideOfTheScopeUsesTheScopeThatTheModelWasMadeIn) {
  const MirroredStrategy strategy = mirrored(2);
  Sequential model;
  {
    const auto scope = strategy.scope();
    model = small_model();
  }
  model(at::ones({1, 8, 8, 1}));
  EXPECT_EQ(model.variables()[0].components().size(), 2u);
}

TEST(LazyBuilding, AnErrorReachesEveryReplicaAndLeavesTheStrategyUsable) {
  const MirroredStrategy strategy = mirrored(2);
  const initializers::Initializer failing(
      [](const Shape&, DType) -> Tensor { throw InvalidArgumentError("no values today"); });
  const layers::Dense dense(1, {.kernel_initializer = failing});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { strategy.run([&] {
                                                   dense(at::ones({1, 2}));
                                                 }); }),
              HasSubstr("no values today"));
  EXPECT_FALSE(dense.built());
  const layers::Dense good(1);
  strategy.run([&] { good(at::ones({1, 2})); });
  EXPECT_TRUE(good.built());
}

TEST(LazyBuilding, ValuesDependOnTheSeedAlone) {
  const auto weights = [](int replicas) {
    const MirroredStrategy strategy = mirrored(replicas);
    random::set_seed(9);
    const Sequential model = small_model();
    strategy.run([&] { model(at::ones({1, 8, 8, 1})); });
    std::vector<double> all;
    for (const Tensor& weight : model.get_weights()) {
      for (const double value : elements(weight)) all.push_back(value);
    }
    return all;
  };
  const auto one = weights(1);
  EXPECT_EQ(one, weights(4));
  EXPECT_EQ(one, weights(2));
}

class Penalised : public layers::Layer {
 protected:
  Tensor call(const Tensor& x, const CallOptions&) override {
    add_loss(x.mean());
    return x;
  }
};

TEST(Losses, OfReplicasNeverMeet) {
  const MirroredStrategy strategy = mirrored(2);
  const Sequential model({std::make_shared<Penalised>(),
                          layers::Dense(1, {.kernel_initializer = "ones",
                                            .kernel_regularizer = regularizers::L2(1),
                                            .activity_regularizer = regularizers::L1(1)})});
  for (int step = 0; step < 3; ++step) {
    const auto losses = strategy.run([&](ReplicaContext& context) {
      model(at::full({1, 1}, context.replica_id_in_sync_group() + 2.0));
      std::vector<Tensor> all = model.losses();
      for (Tensor& loss : all) loss = loss.to(at::kDouble);
      return all;
    });
    const auto values = [&](size_t replica) {
      std::vector<double> result;
      for (const Tensor& loss : losses.value(replica)) result.push_back(loss.item<double>());
      return result;
    };
    // add_loss, then the activity penalty and the weight penalty of Dense.
    EXPECT_THAT(values(0), ElementsAre(2, 2, 1));
    EXPECT_THAT(values(1), ElementsAre(3, 3, 1));
  }
}

TEST(Errors, NameTheLayerAndLeaveTheStrategyUsable) {
  const MirroredStrategy strategy = mirrored(2);
  const Sequential model({layers::Dense(2, {.name = "first"})});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { strategy.run([&] { model(at::ones({3})); }); }),
              AllOf(HasSubstr("'first'"), HasSubstr("[3]")));
  strategy.run([&] { model(at::ones({1, 3})); });
  EXPECT_THAT(model.variables(), SizeIs(2));
}

TEST(Dropout, ReplicasDrawFromTheirOwnStreams) {
  const MirroredStrategy strategy = mirrored(2);
  const auto scope = strategy.scope();
  for (const layers::Dropout& dropout : {layers::Dropout(0.5), layers::Dropout(0.5, {.seed = 1})}) {
    const auto masks = strategy.run([&] { return dropout(at::ones({64}), {.training = true}); });
    EXPECT_NE(elements(masks.value(0)), elements(masks.value(1)));
  }
}

// As in processes of their own, whose programs make the same layer.
TEST(Dropout, TasksThatTrainByThemselvesDropOtherElements) {
  const MirroredStrategy strategy = mirrored(2);
  const auto mask_of = [&](int task) {
    const auto scope = strategy.scope();
    const layers::Dropout dropout(0.5, {.seed = 1});
    const internal::ScopedTask as_worker(internal::Task::named("worker", task));
    const auto both = strategy.run([&] { return dropout(at::ones({64}), {.training = true}); });
    EXPECT_NE(elements(both.value(0)), elements(both.value(1)));
    return elements(both.value(0));
  };
  EXPECT_NE(mask_of(1), mask_of(0));
  EXPECT_NE(mask_of(1), mask_of(2));
  EXPECT_EQ(mask_of(1), mask_of(1));
}

// As workers of one process do, of which each draws first when it has its first batch.
TEST(Dropout, StreamsMayBeMadeWhileACheckpointAsksForThem) {
  const layers::Dropout dropout(0.5, {.seed = 1});
  const std::vector<train::TrackableChild> children =
      train::TrackableHandle(dropout)->checkpoint_children();
  ASSERT_THAT(children, SizeIs(1));
  constexpr int kTasks = 200;
  auto drawing = std::async(std::launch::async, [&] {
    const MirroredStrategy strategy = mirrored(1);
    const auto scope = strategy.scope();
    for (int task = kTasks - 1; task >= 0; --task) {
      const internal::ScopedTask as_worker(internal::Task::named("worker", task));
      dropout(at::ones({2}), {.training = true});
    }
  });
  while (drawing.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    EXPECT_LE(children[0].object->checkpoint_children().size(), 1);
  }
  drawing.get();
  EXPECT_THAT(children[0].object->checkpoint_children(), SizeIs(1));
}

}  // namespace
}  // namespace cohort::keras
