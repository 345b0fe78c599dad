// The strategy that is current where no other is: one replica, the caller's own thread and devices.
#include <ATen/core/grad_mode.h>

#include "cohort/core/flush_denormals.h"
#include "cohort/distribute/context_stack.h"
#include "cohort/distribute/mirrored_variable.h"
#include "cohort/distribute/strategy_core.h"
#include "cohort/distribute/sync_on_read_variable.h"
#include "cohort/ops/random.h"

namespace cohort::internal {
namespace {

class DefaultStrategy final : public StrategyCore {
 public:
  std::string_view name() const override { return "default strategy"; }
  bool is_default() const override { return true; }
  int num_replicas_in_sync() const override { return 1; }
  int num_local_replicas() const override { return 1; }
  int replica_id(int local_id) const override { return local_id; }

  const std::vector<std::string>& worker_devices() const override {
    throw FailedPreconditionError(
        "the default strategy has no worker_devices or parameter_devices; make a strategy with "
        "devices, such as OneDeviceStrategy");
  }

  std::vector<random::RandomGenerator> replica_generators() override {
    return {random::get_global_generator()};
  }

  // Calls the function on the caller's thread and devices; grad mode is off, as in every step.
  void run(const std::shared_ptr<RunFrame>& frame, const distribute::RunOptions&) override {
    ContextGuard guard(*this, &default_replica_context());
    at::NoGradGuard no_grad;
    const ScopedFlushDenormals flush_denormals;
    frame->call(default_replica_context(), 0);
  }

  std::shared_ptr<VariableImpl> create_variable(const Tensor& initial_value,
                                                distribute::VariableOptions options) override {
    std::vector<Tensor> components{initial_value.clone(at::MemoryFormat::Contiguous)};
    if (options.synchronization == distribute::VariableSynchronization::ON_READ) {
      return std::make_shared<SyncOnReadVariable>(shared_from_this(), std::move(options),
                                                  std::move(components));
    }
    return std::make_shared<MirroredVariable>(shared_from_this(), std::move(options),
                                              std::move(components));
  }

  Tensor sum_over_replicas(at::ArrayRef<Tensor> local_components) override {
    return local_components[0];
  }
  Tensor gather_over_replicas(at::ArrayRef<Tensor> local_components, int64_t) override {
    return local_components[0];
  }
};

}  // namespace

const std::shared_ptr<StrategyCore>& default_core() {
  static const std::shared_ptr<StrategyCore> core = std::make_shared<DefaultStrategy>();
  return core;
}

distribute::ReplicaContext& default_replica_context() {
  static distribute::ReplicaContext context(*default_core(), 0, nullptr);
  return context;
}

}  // namespace cohort::internal
