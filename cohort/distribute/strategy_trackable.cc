// What of a strategy belongs into a checkpoint.
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/strategy_core.h"
#include "cohort/distribute/variable_impl.h"
#include "cohort/ops/random.h"
#include "cohort/train/save_group.h"
#include "cohort/train/trackable.h"

namespace cohort::distribute {
namespace {

using train::TrackableChild;
using train::TrackableHandle;

// The generator of replica r is the child "replica_r". A run with fewer replicas than were saved
// takes those it has; one with more goes on from its own seeds in the others.
class StrategyObject final : public train::Trackable {
 public:
  explicit StrategyObject(std::shared_ptr<internal::StrategyCore> core) : core_(std::move(core)) {
    for (const random::RandomGenerator& generator : core_->replica_generators()) {
      generators_.emplace_back(generator);
    }
  }

  std::vector<TrackableChild> checkpoint_children() override {
    core_->replica_generators();  // seeds them, if set_seed was called since
    std::vector<TrackableChild> children;
    for (size_t i = 0; i < generators_.size(); ++i) {
      children.push_back({internal::str("replica_", core_->replica_id(static_cast<int>(i))),
                          generators_[i].get().get()});
    }
    return children;
  }

  std::shared_ptr<train::SaveGroup> save_group() const override { return core_->save_group(); }

 private:
  std::shared_ptr<internal::StrategyCore> core_;
  std::vector<TrackableHandle> generators_;
};

}  // namespace

std::shared_ptr<train::Trackable> Strategy::trackable() const {
  return std::make_shared<StrategyObject>(core_);
}

}  // namespace cohort::distribute

namespace cohort::internal {

std::shared_ptr<train::SaveGroup> VariableImpl::save_group() const { return core_->save_group(); }

}  // namespace cohort::internal
