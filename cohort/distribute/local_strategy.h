// The strategies of one process: they differ in their devices and in what they are called.
#pragma once

#include "cohort/distribute/local_replicas.h"
#include "cohort/distribute/strategy_core.h"

namespace cohort::internal {

// One replica a device, all in this process; variables mirrored over them.
class LocalStrategy : public StrategyCore {
 public:
  struct Config {
    std::string name;
    std::vector<std::string> devices;  // canonical, existing, not empty, no device twice
    // Whether mirrored variables of replicas that share memory keep one storage.
    bool shared_storage = true;
  };
  explicit LocalStrategy(Config config);

  std::string_view name() const override { return config_.name; }
  int num_replicas_in_sync() const override { return replicas_.size(); }
  int num_local_replicas() const override { return replicas_.size(); }
  int replica_id(int local_id) const override { return local_id; }
  const std::vector<std::string>& worker_devices() const override { return replicas_.devices(); }
  std::vector<random::RandomGenerator> replica_generators() override;
  void run(const std::shared_ptr<RunFrame>& frame, const distribute::RunOptions& options) override;
  std::shared_ptr<VariableImpl> create_variable(const Tensor& initial_value,
                                                distribute::VariableOptions options) override;
  Tensor sum_over_replicas(at::ArrayRef<Tensor> local_components) override;
  Tensor gather_over_replicas(at::ArrayRef<Tensor> local_components, int64_t axis) override;

 private:
  std::vector<Tensor> make_components(const Tensor& initial_value, bool shared) const;

  Config config_;
  LocalReplicas replicas_;
};

}  // namespace cohort::internal
