// More variables on one ps task than a message of a call can have tensors, with names that are
// longer than its fields may be.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/data/testing_files.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/train/checkpoint.h"

namespace cohort::distribute {
namespace {

constexpr int kVariables = 4'100;

class ManyVariables : public data::FilesTest {
 protected:
  std::vector<Variable> make() const {
    const auto scope = strategy_.scope();
    std::vector<Variable> all;
    for (int i = 0; i < kVariables; ++i) {
      all.emplace_back(at::full({2}, 1. * i),
                       VariableOptions{.name = std::string(130, 'n') + std::to_string(i)});
    }
    return all;
  }
  TestingCluster cluster_{1, 1};
  const ParameterServerStrategy strategy_{cluster_.resolver()};
};

TEST_F(ManyVariables, AreReadUpdatedSavedAndRestored) {
  const std::vector<Variable> all = make();
  const auto add = strategy_.function("add", [&] {
    for (const Variable& v : all) Variable(v).assign_add(at::ones({2}));
  });
  const auto read = strategy_.function("read", [&] {
    double sum = 0;
    for (const Variable& v : all) sum += v.value().sum().item<double>();
    return sum;
  });
  const coordinator::ClusterCoordinator coordinator(strategy_);
  const auto sum = [&] { return coordinator.schedule(read).fetch().tensor().item<double>(); };
  const double start = 1. * kVariables * (kVariables - 1);
  std::vector<train::NamedObject> named;
  for (size_t i = 0; i < all.size(); ++i) named.push_back({"v" + std::to_string(i), all[i]});
  const train::Checkpoint checkpoint(named);
  const std::string path = checkpoint.save(directory + "/ckpt");

  coordinator.schedule(add);
  coordinator.join();
  EXPECT_EQ(sum(), start + 2 * kVariables);
  EXPECT_EQ(all.back().value()[1].item<double>(), kVariables);
  checkpoint.restore(path).assert_consumed();
  EXPECT_EQ(sum(), start);
}

}  // namespace
}  // namespace cohort::distribute
