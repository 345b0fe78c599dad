#include "cohort/keras/layers/base/replica_generators.h"

#include <utility>

#include "cohort/core/text.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/replica_streams.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/ops/generator_streams.h"

namespace cohort::internal {
namespace {

std::string stream_name(size_t stream) { return str("replica_", stream); }

}  // namespace

random::RandomGenerator ReplicaGenerators::get() {
  const distribute::ReplicaContext* replica = distribute::get_replica_context();
  const auto id = static_cast<size_t>(replica == nullptr ? 0 : replica->replica_id_in_sync_group());
  const auto count = static_cast<size_t>(replica == nullptr ? 1 : replica->num_replicas_in_sync());
  const int task = task_of_streams(current_core()->group());
  if (std::optional<random::RandomGenerator> made = find(task, id, count)) return *made;
  const std::lock_guard lock(making_);
  for (size_t i = number_of(task); i < count; ++i) add(task, i);
  return find(task, id, count).value();
}

std::vector<train::TrackableChild> ReplicaGenerators::checkpoint_children() {
  std::vector<train::TrackableChild> children;
  const std::lock_guard lock(mutex_);
  const auto its = streams_.find(streams_.contains(0) ? 0 : maker_);
  if (its == streams_.end()) return children;
  for (size_t i = 0; i < its->second.size(); ++i) {
    children.push_back({stream_name(i), its->second[i].in_checkpoint.get().get()});
  }
  return children;
}

std::optional<random::RandomGenerator> ReplicaGenerators::find(int task, size_t id,
                                                               size_t count) const {
  const std::lock_guard lock(mutex_);
  const auto its = streams_.find(task);
  if (its == streams_.end() || its->second.size() < count) return std::nullopt;
  return its->second[id].generator;
}

size_t ReplicaGenerators::number_of(int task) const {
  const std::lock_guard lock(mutex_);
  const auto its = streams_.find(task);
  return its == streams_.end() ? 0 : its->second.size();
}

void ReplicaGenerators::add(int task, size_t i) {
  const auto generator = make_stream(seed_, first_stream_of(task) + i);
  Stream made{generator, train::TrackableHandle(generator)};
  if (is_saved(task)) child_appeared(stream_name(i), *made.in_checkpoint);
  const std::lock_guard lock(mutex_);
  streams_[task].push_back(std::move(made));
}

bool ReplicaGenerators::is_saved(int task) const {
  const std::lock_guard lock(mutex_);
  return task == 0 || (task == maker_ && !streams_.contains(0));
}

}  // namespace cohort::internal
