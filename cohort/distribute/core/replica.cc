#include "cohort/distribute/core/replica.h"

#include <optional>
#include <utility>

#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/step_output.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

Replica::Replica(StrategyCore& core, int local_id,
                 std::shared_ptr<const collective::GroupView> view,
                 const random::RandomGenerator* merge_generator, StepOutput* output)
    : core_(core),
      local_id_(local_id),
      replica_id_(view->first_replica() + local_id),
      view_(std::move(view)),
      merge_generator_(merge_generator),
      output_(output) {}

int Replica::num_replicas_in_sync() const { return view_->num_replicas(); }

collective::SyncGroup& Replica::group() const { return core_.group(); }

int64_t Replica::step() const { return output_ == nullptr ? 0 : output_->step(); }

void Replica::next_step() const {
  if (output_ != nullptr) output_->next_step();
}

std::vector<std::string> Replica::devices() const {
  return {core_.worker_devices()[static_cast<size_t>(local_id_)]};
}

void Replica::check_own_context(const char* what) const {
  if (current_replica() == this) return;
  throw FailedPreconditionError(str("Mismatching ReplicaContext: ", what,
                                    " was called on a replica other than the calling one"));
}

void Replica::merge(const char* what, void* mine,
                    FunctionRef<void(std::span<void* const>)> leader) {
  check_own_context(what);
  const auto across_replicas = [&](std::span<void* const> all) {
    if (output_ != nullptr) output_->flush();
    ContextGuard guard(core_, nullptr, creators_around_step(*this));
    std::optional<ScopedGenerator> generator;
    if (merge_generator_ != nullptr) generator.emplace(*merge_generator_);
    leader(all);
  };
  group().meet(local_id_, what, mine, across_replicas);
}

void require_cross_replica(const char* method, const char* use) {
  const ContextFrame* frame = current_frame();
  if (frame == nullptr || frame->replica == nullptr || frame->core->is_default()) return;
  throw FailedPreconditionError(str("Method requires being in cross-replica context: ", method,
                                    " was called in replica ",
                                    frame->replica->replica_id_in_sync_group(), "; use ", use));
}

}  // namespace cohort::internal
