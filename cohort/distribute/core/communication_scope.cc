#include "cohort/distribute/core/communication_scope.h"

#include "cohort/core/threads/bounded_wait.h"
#include "cohort/distribute/core/strategy_core.h"

namespace cohort::internal {
namespace {

using distribute::experimental::CommunicationOptions;

CommunicationOptions merged(const StrategyCore& core, const CommunicationOptions& of_call) {
  of_call.check();
  return core.communication_options().merged_with(of_call);
}

}  // namespace

CommunicationScope::CommunicationScope(const StrategyCore& core,
                                       const CommunicationOptions& of_call)
    : timeout_(bounded_wait(merged(core, of_call).timeout)) {}

}  // namespace cohort::internal
