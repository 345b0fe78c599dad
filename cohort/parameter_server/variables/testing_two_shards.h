// For tests: variables in two shards, each on a ps task of a cluster in this process, over real
// sockets.
#pragma once

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cohort/distribute/testing_devices.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"

namespace cohort::distribute {

inline Tensor at_rows(std::vector<int64_t> ids) { return at::tensor(ids, int64); }

// What a fixture of such tests has.
class TwoShards {
 protected:
  using Load = internal::VariableStore::Load;

  explicit TwoShards(int replicas_of_worker = 1)
      : cpus_(replicas_of_worker), strategy_(cluster_.resolver(), options(replicas_of_worker)) {}

  // 0, 1 | 2, 3 ...: one row after another; 5 lie in shards of 3 and 2.
  Variable table(const std::string& name = "table", int64_t rows = 5) const {
    const auto scope = strategy_.scope();
    return Variable(at::arange(2 * rows, float32).reshape({rows, 2}), {.name = name});
  }
  Load load(int ps) const {
    return strategy_.parameter_server_core()->variables()->store().load(ps);
  }
  // What reads since `before` have cost.
  std::pair<int64_t, int64_t> rows_and_values(int ps, const Load& before) const {
    const Load now = load(ps);
    return {now.rows_read - before.rows_read, now.values_read - before.values_read};
  }

  const LogicalCpus cpus_;
  TestingCluster cluster_{1, 2};
  const ParameterServerStrategy strategy_;

 private:
  static ParameterServerStrategyOptions options(int replicas_of_worker) {
    ParameterServerStrategyOptions options;
    options.variable_partitioner = partitioners::FixedShardsPartitioner(2);
    for (int i = 0; i < replicas_of_worker; ++i) {
      options.worker_devices.push_back("CPU:" + std::to_string(i));
    }
    return options;
  }
};

}  // namespace cohort::distribute
