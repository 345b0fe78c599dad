#include "cohort/distribute/reduce/structure_form.h"

#include <span>

#include "cohort/collective/task_collectives.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

// The text that must be the same wherever the structure is combined: "['a'], ['b'] of strings".
std::string form_of(const Structure& value) {
  std::string form;
  value.for_each_with_path([&](const std::string& path, const Leaf& leaf) {
    form += str(form.empty() ? "" : ", ", path, leaf.is_strings() ? " of strings" : "");
  });
  return form;
}

}  // namespace

void agree_on_form(collective::SyncGroup& group, const Structure& value, std::string_view call) {
  if (!group.spans_tasks() || value.is_leaf() || value.num_leaves() == 0) return;
  collective::agree_between_tasks(group, str(call, " of a structure"), form_of(value));
}

void agree_on_form(Replica& replica, const Structure& value, const char* call) {
  if (replica.num_replicas_in_sync() == 1 || value.is_leaf() || value.num_leaves() == 0) return;
  collective::SyncGroup& group = replica.group();
  std::string own = form_of(value);
  group.meet(replica.local_replica_id(), call, &own, [&](std::span<void* const> all) {
    const auto form_of_replica = [&](size_t r) -> const std::string& {
      return *static_cast<const std::string*>(all[r]);
    };
    const int first = replica.replica_id_in_sync_group() - replica.local_replica_id();
    for (size_t r = 1; r < all.size(); ++r) {
      if (form_of_replica(r) == form_of_replica(0)) continue;
      throw FailedPreconditionError(
          str(call, ": replica ", first, " brings a structure of ", form_of_replica(0),
              ", replica ", first + static_cast<int>(r), " one of ", form_of_replica(r),
              "; every replica must bring the same keys in the same order"));
    }
    collective::agree_between_tasks(group, str(call, " of a structure"), own);
  });
}

}  // namespace cohort::internal
