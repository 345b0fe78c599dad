// A checkpoint is restored before the model is built: weights and slots start from its values, and
// nothing else is made for them.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/variables/local_variable.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/optimizers/checkpoint_slots.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/random.h"
#include "cohort/optim/adam.h"
#include "cohort/optim/rmsprop.h"
#include "cohort/optim/sgd.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/objects/pending_value.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::keras {
namespace {

using initializers::Initializer;
using internal::SimulatedFileSystem;
using ::testing::HasSubstr;
using train::Checkpoint;
using train::NamedObject;

class DeferredRestore : public ::testing::Test {
 protected:
  static constexpr const char* kPrefix = "dir/ckpt";

  Checkpoint make(std::vector<NamedObject> objects) {
    Checkpoint checkpoint(std::move(objects));
    internal::use_file_system(checkpoint, files_);
    return checkpoint;
  }

  // A layer whose weights are 3 and 0 is saved.
  void save_layer() {
    const layers::Dense layer(2, {.kernel_initializer = initializers::Constant(3)});
    layer(at::ones({1, 4}));
    make({{"layer", layer}}).write(kPrefix);
  }
  static Tensor threes() { return at::full({4, 2}, 3.0F); }

  SimulatedFileSystem files_;
};

struct Calls {
  int made = 0;
  int skipped = 0;
};

Initializer counting(const std::shared_ptr<Calls>& calls, bool can_skip) {
  const auto make = [calls](const std::vector<int64_t>& shape, DType dtype) {
    ++calls->made;
    return at::ones(shape, dtype);
  };
  if (!can_skip) return make;
  return {make, [calls](const std::vector<int64_t>&, DType) { ++calls->skipped; }};
}

// By the number of replicas; 0: without a strategy.
class DeferredRestoreOfReplicas : public DeferredRestore,
                                  public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Replicas, DeferredRestoreOfReplicas, ::testing::Values(0, 1, 2));

TEST_P(DeferredRestoreOfReplicas, AWeightThatWaitsInACheckpointIsNotInitialized) {
  save_layer();
  for (const bool in_step : {false, true}) {
    const auto strategy = distribute::mirrored(std::max(1, GetParam()));
    std::optional<distribute::Scope> scope;
    if (GetParam() > 0) scope.emplace(strategy.core());
    const auto calls = std::make_shared<Calls>();
    const layers::Dense layer(2, {.kernel_initializer = counting(calls, /*can_skip=*/true)});
    const auto status = make({{"layer", layer}}).read(kPrefix);
    scope.reset();
    const auto call = [&] { layer(at::ones({1, 4})); };
    if (in_step && GetParam() > 0) {
      strategy.run(call);
    } else {
      call();
    }
    EXPECT_EQ(calls->made, 0);
    EXPECT_EQ(calls->skipped, 1);
    const auto kernel = layer->variables()[0].components();
    EXPECT_EQ(kernel.size(), static_cast<size_t>(std::max(1, GetParam())));
    for (const Tensor& one : kernel.values()) EXPECT_TRUE(at::equal(one, threes()));
    status.assert_consumed();
  }
}

TEST_F(DeferredRestore, AFunctionOfTheUsersRunsAndItsValueIsOverwritten) {
  save_layer();
  const auto calls = std::make_shared<Calls>();
  const layers::Dense layer(2, {.kernel_initializer = counting(calls, /*can_skip=*/false)});
  const auto status = make({{"layer", layer}}).read(kPrefix);
  layer(at::ones({1, 4}));
  EXPECT_EQ(calls->made, 1);
  EXPECT_TRUE(at::equal(layer->variables()[0].value().detach(), threes()));
  status.assert_consumed();
}

TEST_F(DeferredRestore, AValueThatDoesNotFitIsRefusedAsBefore) {
  save_layer();
  const layers::Dense layer(5);
  make({{"layer", layer}}).read(kPrefix).expect_partial();
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                  layer(at::ones({1, 4}));
                }),
                HasSubstr("layer/kernel: the checkpoint has float32 [4,2], the program float32 "
                          "[4,5]"));
  }
}

// What an initializer would have made for a restored weight is skipped, not handed to the next one.
TEST_F(DeferredRestore, LaterWeightsStartFromTheSameValuesAsWithoutARestore) {
  save_layer();
  const std::vector<Initializer (*)()> all = {
      [] { return initializers::RandomUniform({.seed = 3}); },
      [] { return initializers::RandomNormal({.seed = 3}); },
      [] { return initializers::TruncatedNormal({.seed = 3}); },
      [] { return initializers::GlorotUniform({.seed = 3}); },
      [] { return initializers::HeNormal({.seed = 3}); },
      [] {
        return Initializer([](const std::vector<int64_t>& shape, DType dtype) {
          return random::normal(shape, {.dtype = dtype});  // everybody's stream
        });
      },
  };
  for (const auto make_initializer : all) {
    const auto later_kernel = [&](bool restore) {
      random::set_seed(1);
      const Initializer shared = make_initializer();
      const layers::Dense layer(2, {.kernel_initializer = shared});
      const layers::Dense later(3, {.kernel_initializer = shared});
      if (restore) make({{"layer", layer}}).read(kPrefix).expect_partial();
      layer(at::ones({1, 4}));
      later(at::ones({1, 4}));
      const bool restored = at::equal(layer->variables()[0].value().detach(), threes());
      EXPECT_EQ(restored, restore);
      return later->variables()[0].value().detach().clone();
    };
    EXPECT_TRUE(at::equal(later_kernel(true), later_kernel(false)));
  }
}

TEST_F(DeferredRestore, SlotsThatWaitAreFoundByTheNumbersThatTheyWillGet) {
  std::vector<std::unique_ptr<const optim::UpdateRule>> rules;
  rules.push_back(optim::make_adam({.amsgrad = true}));
  rules.push_back(optim::make_rmsprop({.momentum = 0.9, .centered = true}));
  rules.push_back(optim::make_sgd({.momentum = 0.9}));
  const auto list_of = [](internal::CheckpointSlots& slots) {
    return std::shared_ptr<train::TrackableList>(std::shared_ptr<void>(), &slots.variables());
  };
  for (const auto& rule : rules) {
    internal::CheckpointSlots saved("optimizer", *rule);
    const Variable iterations(at::zeros({}, int64));
    saved.add_iterations(iterations.impl());
    double next = 1;
    const auto make_targets = [&](size_t count) {
      std::vector<internal::UpdateTarget> targets;
      for (size_t i = 0; i < count; ++i) {
        internal::UpdateTarget& target =
            targets.emplace_back(internal::UpdateTarget{Variable(at::zeros({2})), {}});
        for (int s = 0; s < rule->num_slots(); ++s) {
          target.slots.emplace_back(at::full({2}, next++));
        }
      }
      return targets;
    };
    const std::vector<std::vector<internal::UpdateTarget>> made = {make_targets(2),
                                                                   make_targets(3)};
    for (const auto& targets : made) saved.add(targets);
    make({{"_variables", list_of(saved)}}).write(kPrefix);

    internal::CheckpointSlots resumed("optimizer", *rule);
    resumed.add_iterations(iterations.impl());
    make({{"_variables", list_of(resumed)}}).read(kPrefix).expect_partial();
    for (const auto& targets : made) {
      for (size_t t = 0; t < targets.size(); ++t) {
        for (size_t s = 0; s < targets[t].slots.size(); ++s) {
          const auto pending = resumed.pending_value(
              {.target = t, .num_targets = targets.size(), .slot = s}, {2}, float32);
          ASSERT_NE(pending, nullptr);
          EXPECT_TRUE(at::equal(pending->read({.start = {0}, .length = {2}}),
                                targets[t].slots[s].value().detach()));
        }
      }
      resumed.add(targets);
    }
  }
}

// Whether it has slots by then or not, and whether the checkpoint has.
TEST_F(DeferredRestore, AnOptimizerOfAnotherClassIsRefusedBeforeAnythingChanges) {
  const std::vector<std::function<optimizers::Optimizer(double rate)>> classes = {
      [](double rate) { return optimizers::SGD({.learning_rate = rate}); },
      [](double rate) { return optimizers::Adam({.learning_rate = rate}); },
      [](double rate) { return optimizers::Adam({.learning_rate = rate, .amsgrad = true}); },
      [](double rate) { return optimizers::Adam({.learning_rate = rate, .use_ema = true}); },
      [](double rate) { return optimizers::RMSprop({.learning_rate = rate}); },
      [](double rate) { return optimizers::Adagrad({.learning_rate = rate}); },
      [](double rate) { return optimizers::Adadelta({.learning_rate = rate}); },
      [](double rate) { return optimizers::Adamax({.learning_rate = rate}); },
      [](double rate) { return optimizers::Nadam({.learning_rate = rate}); },
      [](double rate) { return optimizers::Lion({.learning_rate = rate}); },
      [](double rate) { return optimizers::Ftrl({.learning_rate = rate}); }};
  const std::vector<Variable> weights = {Variable(at::zeros({3})), Variable(at::zeros({3}))};
  for (size_t i = 0; i < classes.size(); ++i) {
    for (size_t j = 0; j < classes.size(); ++j) {
      for (const int built : {0, 1, 2, 3}) {
        const optimizers::Optimizer saved = classes[i](0.5);
        const optimizers::Optimizer own = classes[j](0.25);
        if ((built & 1) != 0) saved.build(weights);
        if ((built & 2) != 0) own.build(weights);
        make({{"optimizer", saved}}).write(kPrefix);
        const auto read = [&] { make({{"optimizer", own}}).read(kPrefix).expect_partial(); };
        SCOPED_TRACE(internal::str(saved.name(), " ", i, " into ", own.name(), " ", j));
        if (i == j) {
          read();
        } else {
          EXPECT_THAT(thrown<InvalidArgumentError>(read), HasSubstr(own.name() + "' keeps "));
        }
        EXPECT_EQ(own.learning_rate(), i == j ? 0.5 : 0.25);
        own.build(weights);
      }
    }
  }
}

// Keras makes Nadam's product when it makes the slots.
TEST_F(DeferredRestore, AnOptimizerOfKerasBeforeItsFirstStepHasNoNumbersThatFollowFromOthers) {
  class Fresh final : public train::Trackable {
   public:
    explicit Fresh(Variable iterations) : iterations_(std::move(iterations)) {
      all_.add(iterations_.impl());
    }
    std::vector<train::TrackableChild> checkpoint_children() override {
      return {{"_variables", &all_},
              {"_iterations", &iterations_.impl()},
              {"_learning_rate", &rate_.impl()}};
    }

   private:
    Variable iterations_;
    Variable rate_ = Variable(at::full({}, 0.5F));
    train::TrackableList all_;
  };
  make({{"optimizer", std::make_shared<Fresh>(Variable(at::zeros({}, int64)))}}).write(kPrefix);
  const optimizers::Nadam own({.learning_rate = 0.25});
  make({{"optimizer", own}}).read(kPrefix).assert_consumed();
  EXPECT_EQ(own.learning_rate(), 0.5);
}

// Keras has zeros where it keeps none of SGD; of RMSprop it numbers later slots otherwise.
TEST_F(DeferredRestore, AnOptimizerOfOneClassMayKeepMoreWhereItsSlotsHaveTheSameNumbers) {
  const std::vector<Variable> weights = {Variable(at::zeros({3})), Variable(at::zeros({3}))};
  for (const bool more : {false, true}) {
    const optimizers::SGD saved({.learning_rate = 0.5, .momentum = more ? 0 : 0.5});
    saved.build(weights);
    make({{"optimizer", saved}}).write(kPrefix);
    const optimizers::SGD own({.learning_rate = 0.25, .momentum = more ? 0.5 : 0});
    make({{"optimizer", own}}).read(kPrefix).expect_partial();
    own.build(weights);
    EXPECT_EQ(own.learning_rate(), 0.5);
  }
  const optimizers::RMSprop saved({.learning_rate = 0.5, .centered = true});
  saved.build(weights);
  make({{"optimizer", saved}}).write(kPrefix);
  const optimizers::RMSprop own({.learning_rate = 0.25, .momentum = 0.5, .centered = true});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                make({{"optimizer", own}}).read(kPrefix);
              }),
              HasSubstr("that of the checkpoint _average_gradients, _velocities"));
  EXPECT_EQ(own.learning_rate(), 0.25);
}

}  // namespace
}  // namespace cohort::keras
