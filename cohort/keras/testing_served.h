// For tests of what ps tasks keep: a small text model, and steps of a worker.
#pragma once

#include <ATen/ops/allclose.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/keras/keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"

namespace cohort::keras {

inline const distribute::ParameterServerStrategyOptions kTwoShards{
    .variable_partitioner = distribute::partitioners::FixedShardsPartitioner(2)};

// Runs fn on a worker `times` times, one after another.
template <class Fn>
void run_on_worker(const distribute::ParameterServerStrategy& strategy, int times, Fn fn,
                   const std::string& name = "step") {
  const auto function = strategy.function(name, [&strategy, fn] { strategy.run(fn); });
  const distribute::coordinator::ClusterCoordinator coordinator(strategy);
  for (int i = 0; i < times; ++i) {
    coordinator.schedule(function);
    coordinator.join();
  }
}

// An embedding of 100 rows, its mean, and a dense layer.
struct Text {
  explicit Text(const optimizers::Optimizer& optimizer)
      : model({layers::Embedding(
                   100, 4, {.embeddings_initializer = initializers::RandomUniform({.seed = 1})}),
               layers::GlobalAveragePooling1D(),
               layers::Dense(1, {.kernel_initializer = initializers::GlorotUniform({.seed = 2})})}),
        optimizer(optimizer) {
    model(at::zeros({1, 3}, int64));
    this->optimizer.build(model.trainable_variables());
  }

  void step() const {
    const Tensor ids = at::tensor({3, 97, 3, 50, 3, 51}, int64).reshape({2, 3});
    GradientTape tape;
    const Tensor error = model(ids, {.training = true}) - 1;
    optimizer.minimize((error * error).sum(), model.trainable_variables(), tape);
  }

  Sequential model;
  optimizers::Optimizer optimizer;
};

inline std::vector<Tensor> values(const std::vector<Variable>& variables) {
  std::vector<Tensor> all;
  for (const Variable& variable : variables) all.push_back(variable.value().detach().clone());
  return all;
}

inline void expect_equal(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(at::allclose(found[i], expected[i], 1e-6, 1e-7)) << "variable " << i;
  }
}

}  // namespace cohort::keras
