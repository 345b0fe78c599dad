// What workers draw: each its own numbers, the same in every run of a seed.
#include "cohort/parameter_server/closures/worker_generator.h"

#include <ATen/ops/_unique.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <vector>

#include "cohort/ops/testing_seed.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/testing_gate.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using internal::WorkerGenerator;
using random::RandomGenerator;

class WorkerGeneratorTest : public ::testing::Test {
 protected:
  ~WorkerGeneratorTest() override { internal::forget_seed(); }
};

Tensor draw(const RandomGenerator& generator) { return generator.uniform_full_int({8}); }

TEST_F(WorkerGeneratorTest, IsOfTheSeedAndTheWorker) {
  random::set_seed(7);
  WorkerGenerator first(0), second(1);
  const RandomGenerator held = second.get();
  const Tensor numbers = draw(held);
  EXPECT_FALSE(at::equal(draw(first.get()), numbers));
  EXPECT_FALSE(at::equal(draw(second.get()), numbers));
  random::set_seed(7);
  EXPECT_TRUE(at::equal(draw(second.get()), numbers));
  EXPECT_FALSE(at::equal(draw(held), numbers));  // the same one
  EXPECT_TRUE(at::equal(draw(first.get()), draw(random::get_global_generator())));
  internal::forget_seed();
  WorkerGenerator other(1);
  EXPECT_FALSE(at::equal(draw(other.get()), numbers));
}

// What each worker draws, by its index, of a program that begins with this seed.
std::map<int, std::vector<Tensor>> drawn_by_workers(const TestingCluster& cluster) {
  random::set_seed(7);
  const ParameterServerStrategy strategy(cluster.resolver());
  auto scope = strategy.scope();
  const RandomGenerator generator = RandomGenerator::from_seed(3);
  scope.close();
  Gate gate;
  const ClusterCoordinator coordinator(strategy, {.window = 1});
  const auto function = [&] {
    gate.pass();  // so that each worker has one
    const Tensor in_step =
        strategy
            .run([&] {
              return at::cat({draw(random::get_global_generator()), draw(generator)});
            })
            .value(0);
    return tuple(coordinator::get_current_worker_index(), in_step,
                 draw(random::get_global_generator()), draw(generator));
  };
  const std::vector<coordinator::RemoteValue> results = {coordinator.schedule(function),
                                                         coordinator.schedule(function)};
  EXPECT_TRUE(gate.wait_for(2));
  gate.open();
  std::map<int, std::vector<Tensor>> numbers;
  for (const coordinator::RemoteValue& result : results) {
    const Structure found = result.fetch();
    auto& of_worker = numbers[found[0].tensor().item<int>()];
    for (size_t i = 1; i < found.size(); ++i) of_worker.push_back(found[i].tensor());
  }
  return numbers;
}

TEST_F(WorkerGeneratorTest, WorkersDrawNumbersOfTheirOwnInStepsAndOutside) {
  const TestingCluster cluster(2, 1);
  const auto numbers = drawn_by_workers(cluster), again = drawn_by_workers(cluster);
  ASSERT_EQ(numbers.size(), 2u);
  std::vector<Tensor> all;
  for (const auto& [worker, of_worker] : numbers) {
    all.insert(all.end(), of_worker.begin(), of_worker.end());
    ASSERT_EQ(of_worker.size(), again.at(worker).size());
    for (size_t i = 0; i < of_worker.size(); ++i) {
      EXPECT_TRUE(at::equal(of_worker[i], again.at(worker)[i])) << worker << ' ' << i;
    }
  }
  EXPECT_EQ(std::get<0>(at::_unique(at::cat(all))).numel(), 2 * 4 * 8);
}

}  // namespace
}  // namespace cohort::distribute
