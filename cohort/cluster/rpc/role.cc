#include "cohort/cluster/rpc/role.h"

namespace cohort::internal::rpc {

std::string_view role_name(Role role) {
  switch (role) {
    case Role::kCoordinator:
      return "coordinator";
    case Role::kWorker:
      return "worker";
    case Role::kPs:
      return "ps";
    case Role::kEvaluator:
      return "evaluator";
    case Role::kOperator:
      return "operator";
  }
  return "unknown";
}

}  // namespace cohort::internal::rpc
