#include "cohort/distribute/strategies/strategy_object.h"

#include <vector>

#include "cohort/distribute/core/strategy_core.h"
#include "cohort/ops/random.h"
#include "cohort/train/objects/save_group.h"

namespace cohort::internal {
namespace {

using train::TrackableChild;
using train::TrackableHandle;

class StrategyObject final : public train::Trackable {
 public:
  explicit StrategyObject(std::shared_ptr<StrategyCore> core) : core_(std::move(core)) {
    for (const random::RandomGenerator& generator : core_->replica_generators()) {
      generators_.emplace_back(generator);
    }
  }

  std::vector<TrackableChild> checkpoint_children() override {
    core_->replica_generators();  // seeds them, if set_seed was called since
    std::vector<TrackableChild> children;
    for (size_t i = 0; i < generators_.size(); ++i) {
      children.push_back({str("replica_", core_->replica_id(static_cast<int>(i))),
                          generators_[i].get().get(), /*may_be_missing=*/true});
    }
    return children;
  }

  std::shared_ptr<train::SaveGroup> save_group() const override { return core_->save_group(); }

 private:
  std::shared_ptr<StrategyCore> core_;
  std::vector<TrackableHandle> generators_;
};

}  // namespace

std::shared_ptr<train::Trackable> make_strategy_object(std::shared_ptr<StrategyCore> core) {
  return std::make_shared<StrategyObject>(std::move(core));
}

}  // namespace cohort::internal
