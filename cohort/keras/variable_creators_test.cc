// Weights of layers and state of optimizers go through the program's variable creators.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_folder.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/variables/variable_creator.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras {
namespace {

using distribute::mirrored;
using distribute::MirroredStrategy;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> names(const std::vector<Variable>& variables) {
  std::vector<std::string> all;
  for (const Variable& variable : variables) all.push_back(variable.name());
  return all;
}

TEST(VariableCreators, SeeWeightsWhenALayerIsBuilt) {
  std::vector<std::string> seen;
  const layers::Dense frozen(2, {.name = "frozen"});
  const layers::Dense after(2, {.name = "after"});
  {
    auto scope =
        variable_creator_scope([&](const NextVariableCreator& next, VariableCreation creation) {
          seen.push_back(creation.options.name);
          creation.options.trainable = false;
          return next(std::move(creation));
        });
    frozen(at::ones({1, 3}));
  }
  after(at::ones({1, 3}));
  EXPECT_THAT(seen, ElementsAre("frozen/kernel", "frozen/bias"));
  EXPECT_THAT(frozen.trainable_variables(), IsEmpty());
  EXPECT_THAT(frozen.non_trainable_variables(), SizeIs(2));
  EXPECT_THAT(after.trainable_variables(), SizeIs(2));
}

TEST(VariableCreators, SeeWeightsOnceThatAStepBuilds) {
  const MirroredStrategy strategy = mirrored(3);
  const layers::Dense dense(2, {.name = "dense"});
  std::vector<std::string> seen;
  auto scope =
      variable_creator_scope([&](const NextVariableCreator& next, VariableCreation creation) {
        seen.push_back(creation.options.name);
        return next(std::move(creation));
      });
  strategy.run([&] { dense(at::ones({1, 3})); });
  EXPECT_THAT(seen, ElementsAre("dense/kernel", "dense/bias"));
  EXPECT_EQ(dense.variables()[0].components().size(), 3U);
}

TEST(VariableCreators, MayShareWeightsBetweenLayers) {
  std::vector<Variable> made;
  size_t next_weight = 0;
  auto scope =
      variable_creator_scope([&](const NextVariableCreator& next, VariableCreation creation) {
        const size_t index = next_weight++ % 2;
        if (made.size() == index) made.push_back(next(std::move(creation)));
        return made[index];
      });
  const layers::Dense first(2), second(2);
  first(at::ones({1, 3}));
  second(at::ones({1, 3}));
  EXPECT_TRUE(first.variables()[0] == second.variables()[0]);
  EXPECT_TRUE(first.variables()[1] == second.variables()[1]);
}

TEST(VariableCreators, AWeightKeepsTheShapeAndDtypeOfItsLayer) {
  auto scope =
      variable_creator_scope([](const NextVariableCreator& next, VariableCreation creation) {
        creation.set_initial_value(at::zeros({1, 1}));
        return next(std::move(creation));
      });
  const layers::Dense dense(2, {.name = "dense"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                dense(at::ones({1, 3}));
              }),
              AllOf(HasSubstr("'dense/kernel'"), HasSubstr("float32 [3,2]"), HasSubstr("[1,1]")));
  EXPECT_FALSE(dense.built());
  scope.close();
  dense(at::ones({1, 3}));
  EXPECT_TRUE(dense.built());
}

TEST(VariableCreators, SeeTheStateOfOptimizersAndMetrics) {
  std::vector<std::string> seen;
  auto scope =
      variable_creator_scope([&](const NextVariableCreator& next, VariableCreation creation) {
        seen.push_back(creation.options.name);
        return next(std::move(creation));
      });
  const Variable v(at::ones({2}), {.name = "v"});
  const optimizers::SGD sgd({.learning_rate = 0.1, .momentum = 0.9});
  sgd.apply_gradients(zip(std::vector<Tensor>{at::ones({2})}, std::vector<Variable>{v}));
  const auto all = names(sgd.variables());
  for (const std::string& name : all) EXPECT_THAT(seen, ::testing::Contains(name));
  EXPECT_THAT(all, SizeIs(2));
}

TEST(VariableCreators, OfAWeightThatWasRestoredBeforeItWasMade) {
  const internal::TemporaryFolder folder;
  std::string saved;
  {
    const Sequential model({layers::Dense(1, {.kernel_initializer = initializers::Constant(3)})});
    model(at::ones({1, 2}));
    saved = train::Checkpoint({{"model", model}}).save(folder / "c");
  }
  const Sequential model({layers::Dense(1)});
  const train::Checkpoint checkpoint({{"model", model}});
  checkpoint.restore(saved);
  auto scope =
      variable_creator_scope([](const NextVariableCreator& next, VariableCreation creation) {
        creation.set_initial_value(creation.initial_value() + 100);
        return next(std::move(creation));
      });
  model(at::ones({1, 2}));
  EXPECT_THAT(elements(model.variables()[0].value()), ElementsAre(3, 3));
}

}  // namespace
}  // namespace cohort::keras
