#include "cohort/parameter_server/task_step.h"

#include <utility>

#include "cohort/parameter_server/closures/closure_context.h"
#include "cohort/parameter_server/variables/served_variable.h"

namespace cohort::internal {

void TaskStep::use(const std::shared_ptr<ServedVariable>& variable) {
  const std::lock_guard lock(mutex_);
  used_.push_back(variable);
}

void TaskStep::add(int ps, StoreOp op) {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<size_t>(ps);
  if (ops_.size() <= index) ops_.resize(index + 1);
  ops_[index].push_back(std::move(op));
}

void TaskStep::begin(const StoreClient& store) {
  std::vector<std::shared_ptr<ServedVariable>> variables;
  {
    const std::lock_guard lock(mutex_);
    for (auto& ops : ops_) ops.clear();
    std::erase_if(used_, [](const auto& variable) { return variable.expired(); });
    for (const auto& variable : used_) {
      if (auto alive = variable.lock()) variables.push_back(std::move(alive));
    }
  }
  std::erase_if(variables, [](const auto& variable) { return !variable->begin_step(); });
  std::vector<StoreClient::Known> shards;
  for (const auto& variable : variables) variable->add_known(shards);
  if (shards.empty()) return;
  std::vector<VariableStore::Value> values = store.read(shards);
  size_t next = 0;
  for (const auto& variable : variables) {
    const size_t count = variable->placed_shards().size();
    variable->take({values.data() + next, count});
    next += count;
  }
}

void TaskStep::end(const StoreClient& store) {
  std::vector<std::vector<StoreOp>> ops;
  {
    const std::lock_guard lock(mutex_);
    ops.swap(ops_);
  }
  StoreClient::Push push;
  if (ClosureContext* closure = current_closure()) {
    push.token = closure->next_token();
    push.forget_below = closure->forget_below * ClosureContext::kMostPushes;
  }
  store.apply(std::move(ops), push);
}

}  // namespace cohort::internal
