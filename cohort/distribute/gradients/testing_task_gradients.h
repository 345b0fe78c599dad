// For tests of how gradients go between tasks: trainings, and communicators that are watched.
#pragma once

#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/forwarding_communicator.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/distribute/testing_topology.h"
#include "cohort/optim/adam.h"

namespace cohort::distribute {

using internal::Arrival;
using internal::GradientExchange;
using internal::UpdateTarget;

using Gradients = std::function<std::vector<Tensor>(int replica, int step)>;
using Order = std::function<std::vector<size_t>(int task, size_t count)>;

inline std::vector<size_t> forward(int, size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}
inline std::vector<size_t> backward(int, size_t count) {
  std::vector<size_t> order = forward(0, count);
  std::reverse(order.begin(), order.end());
  return order;
}
inline std::vector<size_t> another_on_each_task(int task, size_t count) {
  std::vector<size_t> order = backward(0, count);
  std::rotate(order.begin(), order.begin() + task % static_cast<int>(count), order.end());
  return order;
}

// Targets under the strategy, with the rule's slots.
inline std::vector<UpdateTarget> make_targets(const Strategy& strategy,
                                              const std::vector<std::vector<int64_t>>& shapes,
                                              const optim::UpdateRule& rule, DType dtype = float32,
                                              const std::string& prefix = "v") {
  const auto scope = strategy.scope();
  std::vector<UpdateTarget> targets;
  for (const auto& shape : shapes) {
    const Tensor ones = at::ones(shape, dtype);
    targets.push_back({Variable(ones, {.name = internal::str(prefix, targets.size())}), {}});
    for (const auto& slot : rule.slots()) {
      targets.back().slots.emplace_back(at::full_like(ones, slot.initial_value));
    }
  }
  return targets;
}

// Passes the gradients in this order.
inline void bring_all(GradientExchange& exchange, ReplicaContext& context,
                      const std::vector<Tensor>& gradients, Arrival arrival,
                      const std::vector<size_t>& order) {
  exchange.begin(context, arrival);
  for (const size_t i : order) exchange.bring(context, i, gradients[i]);
}

struct GradientTraining {
  Topology topology{2, 1};
  std::vector<std::vector<int64_t>> shapes;
  Gradients gradients;
  Arrival arrival = Arrival::kAtOnce;
  Order order = forward;
  int64_t bytes_per_pack = 0;
  double global_clipnorm = 0;
  bool skip_not_finite = false;
  DType dtype = float32;
  MakeCommunicators connect = collective::make_socket_communicators;
};

// Six steps of Adam: the final weights and slots of each task, and at the end of each task's the
// norms and which steps updated.
inline std::vector<std::vector<Tensor>> train(const GradientTraining& training) {
  std::vector<std::vector<Tensor>> results(static_cast<size_t>(training.topology.tasks));
  run_all_tasks(
      training.topology.tasks, training.topology.replicas_each,
      [&](const Strategy& strategy, int task) {
        const auto rule = optim::make_adam({});
        const auto targets = make_targets(strategy, training.shapes, *rule, training.dtype);
        const auto exchange = strategy.core()->make_exchange(targets);
        Tensor outcome = at::zeros({6, 2}, float64);
        for (int step = 0; step < 6; ++step) {
          strategy.run([&](ReplicaContext& context) {
            const auto gradients = training.gradients(context.replica_id_in_sync_group(), step);
            bring_all(*exchange, context, gradients, training.arrival,
                      training.order(task, gradients.size()));
            const auto result =
                exchange->finish(context, {.rule = *rule,
                                           .learning_rate = 0.1,
                                           .iteration = step,
                                           .global_clipnorm = training.global_clipnorm,
                                           .skip_not_finite = training.skip_not_finite});
            if (context.local_replica_id() != 0) return;
            outcome[step][0] = std::isfinite(result.global_norm) ? result.global_norm : -1;
            outcome[step][1] = result.updated ? 1 : 0;
          });
        }
        auto& mine = results[static_cast<size_t>(task)];
        for (const UpdateTarget& target : targets) {
          const auto parts = target.variable.components();
          for (const Tensor& part : parts.values()) EXPECT_TRUE(at::equal(part, parts.value(0)));
          mine.push_back(parts.value(0).clone());
          for (const Variable& slot : target.slots) mine.push_back(slot.value().clone());
        }
        mine.push_back(outcome);
      },
      {.communication_options = {.bytes_per_pack = training.bytes_per_pack},
       .connect = training.connect});
  return results;
}

// Equal to the bit on every task of both.
inline void expect_same(const std::vector<std::vector<Tensor>>& all,
                        const std::vector<std::vector<Tensor>>& expected) {
  for (const auto& task : all) {
    ASSERT_EQ(task.size(), expected[0].size());
    for (size_t i = 0; i < task.size(); ++i) {
      EXPECT_TRUE(at::equal(task[i], expected[0][i])) << i;
    }
  }
}

// What goes over a communicator, and who waits for it.
class Watched final : public collective::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;

  collective::Buffer buffer(int64_t bytes) override {
    ++buffers;
    return ForwardingCommunicator::buffer(bytes);
  }
  // Waits until a call of this name has begun.
  bool saw(const std::string& name) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      return std::any_of(names_.begin(), names_.end(),
                         [&](const std::string& one) { return one.starts_with(name); });
    });
  }
  // So many since forget().
  size_t calls() {
    std::lock_guard lock(mutex_);
    return names_.size();
  }
  void forget() {
    std::lock_guard lock(mutex_);
    names_.clear();
    bytes = 0;
  }

  std::atomic<int64_t> bytes{0};
  std::atomic<int> buffers{0};
  // Calls whose names begin with this fail. Set before the step.
  std::string broken;

 private:
  void before(collective::CallOptions& options, int64_t size) override {
    {
      std::lock_guard lock(mutex_);
      names_.emplace_back(options.name);
    }
    changed_.notify_all();
    bytes += size;
    if (!broken.empty() && options.name.starts_with(broken)) {
      throw UnavailableError("its network card was pulled out");
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> names_;  // guarded by mutex_
};

// Watches the communicators of all tasks.
struct Watch {
  std::vector<std::shared_ptr<Watched>> of_task;
  TasksOptions options(int64_t bytes_per_pack = 1) {
    return {.communication_options = {.bytes_per_pack = bytes_per_pack},
            .wrap = [this](std::shared_ptr<collective::Communicator> inner) {
              of_task.push_back(std::make_shared<Watched>(std::move(inner)));
              return of_task.back();
            }};
  }
};

class TaskGradients : public ::testing::TestWithParam<Topology> {};

}  // namespace cohort::distribute
