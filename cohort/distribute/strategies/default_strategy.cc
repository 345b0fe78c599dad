// The strategy that is current where no other is: one replica, the caller's own thread and devices.
#include <ATen/core/grad_mode.h>

#include "cohort/core/cpu/flush_denormals.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/profiler/phase.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/gradients/mirrored_exchange.h"
#include "cohort/distribute/step/recorded_steps.h"
#include "cohort/distribute/step/step_call.h"
#include "cohort/distribute/step/step_runner.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/variables/make_local_variable.h"
#include "cohort/ops/random.h"

namespace cohort::internal {
namespace {

// Its only replica.
distribute::ReplicaContext& default_context() {
  static distribute::ReplicaContext context(*default_core(), 0, default_core()->group().view());
  return context;
}

class DefaultStrategy final : public StrategyCore {
 public:
  std::string_view name() const override { return "default strategy"; }
  bool is_default() const override { return true; }
  collective::SyncGroup& group() const override { return group_; }

  const std::vector<std::string>& worker_devices() const override {
    throw FailedPreconditionError(
        "the default strategy has no worker_devices or parameter_devices; make a strategy with "
        "devices, such as OneDeviceStrategy");
  }

  std::vector<random::RandomGenerator> replica_generators() override {
    return {random::get_global_generator()};
  }

  // Calls the function on the caller's thread and devices; grad mode is off, as in every step.
  void run(const std::shared_ptr<RunFrame>& frame, const distribute::RunOptions& options) override {
    if (options.capture) options.capture->steps().refuse("it runs under no strategy");
    distribute::ReplicaContext& replica = default_context();
    ContextGuard guard(*this, &replica);
    at::NoGradGuard no_grad;
    const ScopedPhase computing(profiler::Phase::kCompute);
    count_step();
    const ScopedFlushDenormals flush_denormals;
    with_typed_errors("replica 0", [&] { frame->call(replica, 0); });
  }

  std::shared_ptr<VariableImpl> create_variable(
      const distribute::VariableSpec& spec,
      const distribute::VariableInitializer& initializer) override {
    return make_local_variable(shared_from_this(), spec, initializer, {});
  }

  std::unique_ptr<GradientExchange> make_exchange(std::vector<UpdateTarget> targets) override {
    return std::make_unique<MirroredExchange>(std::move(targets), group_pointer());
  }

  std::unique_ptr<StepRunner> make_runner() override {
    return make_local_runner(shared_from_this());
  }

 private:
  // Any number of threads may stand in its replica at once.
  mutable collective::SyncGroup group_{1, std::chrono::nanoseconds(0)};
};

}  // namespace

const std::shared_ptr<StrategyCore>& default_core() {
  static const std::shared_ptr<StrategyCore> core = std::make_shared<DefaultStrategy>();
  return core;
}

Replica& default_replica() { return default_context(); }

}  // namespace cohort::internal
