// For tests: what a program computes on a simulated GPU beside what it computes on the CPU.
#pragma once

#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "cohort/core/structure/device.h"
#include "cohort/distribute/strategies/mirrored_strategy.h"
#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/keras/keras.h"
#include "cohort/testing/device/simulated_gpus.h"

namespace cohort::keras {

inline std::vector<Tensor> values_of(const std::vector<Variable>& variables) {
  std::vector<Tensor> values;
  for (const Variable& variable : variables) {
    values.push_back(variable.value().detach().cpu().clone());
  }
  return values;
}

// Expects the second result equal to the first up to `tolerance`, or that of the GPUs.
inline void expect_close(const std::vector<std::vector<Tensor>>& results, double tolerance) {
  tolerance = std::max(tolerance, testing::SimulatedGpus::tolerance());
  ASSERT_EQ(results[0].size(), results[1].size());
  for (size_t i = 0; i < results[0].size(); ++i) {
    const Tensor expected = results[0][i].cpu(), found = results[1][i].cpu();
    ASSERT_EQ(found.sizes(), expected.sizes()) << i;
    EXPECT_TRUE(at::allclose(found, expected, tolerance, tolerance))
        << i << ": " << found << " instead of " << expected;
  }
}

// Calls `compute` within the scope of a strategy of the CPU and one of GPU:0, from the same seeds,
// and expects equal tensors up to `tolerance`.
inline void expect_same_on_gpu(
    const std::function<std::vector<Tensor>(const distribute::Strategy&)>& compute,
    double tolerance = 1e-5) {
  std::vector<std::vector<Tensor>> results;
  for (const std::string device : {"CPU:0", "GPU:0"}) {
    utils::set_random_seed(7);
    const distribute::OneDeviceStrategy strategy(device);
    const auto scope = strategy.scope();
    results.push_back(compute(strategy));
  }
  expect_close(results, tolerance);
}

// The same with MirroredStrategies of two CPUs and of two GPUs, which must be simulated.
inline void expect_same_on_two_gpus(
    const std::function<std::vector<Tensor>(const distribute::Strategy&)>& compute,
    double tolerance = 1e-5) {
  config::set_logical_device_configuration("CPU", 2);
  std::vector<std::vector<Tensor>> results;
  for (const std::string type : {"CPU", "GPU"}) {
    utils::set_random_seed(7);
    const distribute::MirroredStrategy strategy({type + ":0", type + ":1"});
    const auto scope = strategy.scope();
    results.push_back(compute(strategy));
  }
  expect_close(results, tolerance);
}

}  // namespace cohort::keras
