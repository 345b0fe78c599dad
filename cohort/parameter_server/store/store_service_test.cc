#include "cohort/parameter_server/store/store_service.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/rpc/role.h"
#include "cohort/cluster/rpc/service.h"
#include "cohort/core/program/task_id.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"
#include "cohort/parameter_server/store/variable_store.h"

namespace cohort::internal {
namespace {

// The program of a ps task makes the same calls as the coordinator's, and may look at variables
// between them.
TEST(StoreService, LetsTheProgramsOfPsTasksAndEvaluatorsReadAndNothingElse) {
  const TaskId self{kPs, 0};
  const StoreService service({}, self, std::make_shared<VariableStore>(),
                             std::make_shared<CoordinatorFence>(self));
  for (const rpc::Role role : {rpc::Role::kPs, rpc::Role::kEvaluator}) {
    std::set<std::string> allowed;
    for (const rpc::MethodSpec& method : service.methods()) {
      if (method.callers.contains(role)) allowed.emplace(method.name);
    }
    EXPECT_EQ(allowed, (std::set<std::string>{"read", "rows", "load"}));
  }
}

}  // namespace
}  // namespace cohort::internal
