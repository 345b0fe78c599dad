#include "cohort/distribute/strategies/strategy_object.h"

#include <map>
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
  explicit StrategyObject(std::shared_ptr<StrategyCore> core) : core_(std::move(core)) {}

  std::vector<TrackableChild> checkpoint_children() override {
    std::vector<TrackableChild> children;
    int id = core_->replica_id(0);
    for (const random::RandomGenerator& generator : core_->replica_generators()) {
      const auto& handle = generators_.try_emplace(id, generator).first->second;
      children.push_back({str("replica_", id++), handle.get().get(), /*may_be_missing=*/true});
    }
    return children;
  }

  std::shared_ptr<train::SaveGroup> save_group() const override { return core_->save_group(); }

 private:
  std::shared_ptr<StrategyCore> core_;
  std::map<int, TrackableHandle> generators_;  // by replica: a task may come to host others
};

}  // namespace

std::shared_ptr<train::Trackable> make_strategy_object(std::shared_ptr<StrategyCore> core) {
  return std::make_shared<StrategyObject>(std::move(core));
}

}  // namespace cohort::internal
