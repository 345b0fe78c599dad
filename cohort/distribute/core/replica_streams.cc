#include "cohort/distribute/core/replica_streams.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cohort/collective/sync_group.h"
#include "cohort/core/error.h"
#include "cohort/core/program/task.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/core/step_transaction.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/ops/generator_streams.h"

namespace cohort::internal {
namespace {

// A generator whose replicas move from task to task.
class HostedStreams final : public Hosted {
 public:
  HostedStreams(std::shared_ptr<StrategyCore> core, GeneratorStreams& streams)
      : core_(std::move(core)), streams_(streams) {
    core_->transaction()->add(*this, "a generator");
  }
  ~HostedStreams() override { core_->transaction()->remove(*this); }

  void write_state(int replica, std::string& out) const override {
    const GeneratorStreams::States states = streams_.states_of(replica);
    out.append(reinterpret_cast<const char*>(&states), sizeof states);
  }
  void read_state(int replica, std::string_view bytes) override {
    GeneratorStreams::States states;
    if (bytes.size() != sizeof states) {
      throw DataLossError(str("the state of a generator of replica ", replica, " has ",
                              bytes.size(), " bytes, not ", sizeof states));
    }
    std::memcpy(&states, bytes.data(), sizeof states);
    streams_.set_states_of(replica, states);
  }
  void host(collective::ReplicaRange) override {}

 private:
  const std::shared_ptr<StrategyCore> core_;
  GeneratorStreams& streams_;
};

class StrategyGroup final : public ReplicaGroup {
 public:
  explicit StrategyGroup(std::shared_ptr<StrategyCore> core) : core_(std::move(core)) {}

  int task() const override { return task_of_streams(core_->group()); }
  std::vector<int> local_replicas() const override {
    std::vector<int> ids;
    for (int i = 0; i < core_->num_local_replicas(); ++i) ids.push_back(core_->replica_id(i));
    return ids;
  }
  std::shared_ptr<train::SaveGroup> save_group() const override { return core_->save_group(); }
  std::shared_ptr<void> add(GeneratorStreams& streams) override {
    if (core_->transaction() == nullptr) return nullptr;
    return std::make_shared<HostedStreams>(core_, streams);
  }

 private:
  std::shared_ptr<StrategyCore> core_;
};

std::shared_ptr<ReplicaGroup> calling_group() {
  if (in_default_strategy() || current_replica() != nullptr) return nullptr;
  return std::make_shared<StrategyGroup>(current_core());
}

std::optional<int> calling_replica() {
  const Replica* const replica = current_replica();
  if (replica == nullptr || in_default_strategy()) return std::nullopt;
  return replica->replica_id_in_sync_group();
}

constexpr ReplicaLookup kLookup{.group = calling_group, .replica = calling_replica};

}  // namespace

int task_of_streams(const collective::SyncGroup& group) {
  const bool has_others = group.spans_tasks() || group.view()->division != nullptr;
  return has_others ? 0 : std::max(0, Task::current().index());
}

void tell_generators_of_replicas() { set_replica_lookup(kLookup); }

}  // namespace cohort::internal
