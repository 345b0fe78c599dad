// Adafactor under strategies: its formula is in optim; tests/interop compares it with Keras's.
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing_folder.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/keras/optimizers/optimizers.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/random.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras::optimizers {
namespace {

using distribute::mirrored;
using distribute::ReplicaContext;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor drawn(uint64_t seed, const std::vector<int64_t>& shape) {
  return random::RandomGenerator::from_seed(seed).normal(shape);
}

struct Trained {
  Trained() {
    variables = {Variable(drawn(1, {6, 5}), {.name = "kernel"}),
                 Variable(drawn(2, {5}), {.name = "bias"}),
                 Variable(drawn(3, {2, 3, 4}), {.name = "heads"})};
  }
  // What `part` of `parts` brings: the gradients of all parts add up to the same.
  void step(uint64_t number, int64_t parts) const {
    GradientsAndVariables gradients;
    for (size_t i = 0; i < variables.size(); ++i) {
      const Tensor whole = drawn(10 * number + i, variables[i].shape());
      gradients.emplace_back(whole / static_cast<double>(parts), variables[i]);
    }
    optimizer.apply_gradients(gradients);
  }

  std::vector<Variable> variables;
  Adafactor optimizer{AdafactorOptions{.learning_rate = 0.05, .weight_decay = 0.01}};
};

std::vector<Tensor> values_of(const std::vector<Variable>& variables) {
  std::vector<Tensor> values;
  for (const Variable& variable : variables) values.push_back(variable.value().detach().clone());
  return values;
}

TEST(Adafactor, KeepsFactorsOfTheSecondMoment) {
  const Trained trained;
  trained.step(1, 1);
  const std::vector<Variable> all = trained.optimizer.variables();
  std::vector<std::vector<int64_t>> shapes;
  for (const Variable& variable : all) shapes.push_back(variable.shape());
  EXPECT_THAT(shapes, ElementsAre(std::vector<int64_t>{}, std::vector<int64_t>{6},
                                  std::vector<int64_t>{5}, std::vector<int64_t>{6, 5},
                                  std::vector<int64_t>{5}, std::vector<int64_t>{2, 3},
                                  std::vector<int64_t>{2, 4}, std::vector<int64_t>{2, 3, 4}));
}

TEST(Adafactor, ReplicasTrainAsOneDeviceDoes) {
  const Trained alone;
  for (uint64_t i = 0; i < 5; ++i) alone.step(i, 1);
  for (const int replicas : {2, 3}) {
    const auto strategy = mirrored(replicas);
    const auto scope = strategy.scope();
    const Trained shared;
    for (uint64_t i = 0; i < 5; ++i) strategy.run([&] { shared.step(i, replicas); });
    const auto expected = values_of(alone.variables), found = values_of(shared.variables);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(at::allclose(found[i], expected[i], 1e-4, 1e-6)) << "variable " << i;
    }
  }
}

TEST(Adafactor, TakesSparseGradientsAsDenseOnes) {
  const Tensor ids = at::tensor({3, 1}, int64).reshape({1, 2});
  const Tensor rows = at::sparse_coo_tensor(ids, drawn(4, {2, 3}), {5, 3});
  const auto trained = [&](const Tensor& gradient) {
    const Variable table(at::ones({5, 3}), {.name = "table"});
    const Adafactor adafactor(0.1);
    for (int i = 0; i < 3; ++i) adafactor.apply_gradients({{gradient, table}});
    return table.value().detach().clone();
  };
  EXPECT_TRUE(at::equal(trained(rows), trained(rows.to_dense())));
}

TEST(Adafactor, GoesOnFromACheckpoint) {
  const internal::TemporaryFolder folder;
  const Trained whole;
  whole.step(1, 1);
  const auto root = [](const Trained& trained) {
    return train::Checkpoint({{"optimizer", trained.optimizer},
                              {"kernel", trained.variables[0]},
                              {"bias", trained.variables[1]},
                              {"heads", trained.variables[2]}});
  };
  const std::string path = root(whole).write(folder / "ckpt");
  whole.step(2, 1);
  for (const bool built : {false, true}) {
    const Trained resumed;
    if (built) resumed.optimizer.build(resumed.variables);
    root(resumed).read(path);
    resumed.step(2, 1);
    const auto expected = values_of(whole.variables), found = values_of(resumed.variables);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(at::equal(found[i], expected[i])) << i;
  }
}

TEST(Adafactor, IsMadeByNameAndWritten) {
  const Optimizer adafactor = get("adafactor");
  const std::string config = adafactor.serialize()->json();
  for (const char* field : {"\"beta_2_decay\":-0.8", "\"epsilon_1\":1e-30", "\"epsilon_2\":0.001",
                            "\"clip_threshold\":1.0", "\"relative_step\":true"}) {
    EXPECT_THAT(config, HasSubstr(field));
  }
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Adafactor({.clip_threshold = -1}); }),
              HasSubstr("clip_threshold"));
}

}  // namespace
}  // namespace cohort::keras::optimizers
