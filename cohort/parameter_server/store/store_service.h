// Answers what other tasks ask of this ps task's store.
#pragma once

#include <memory>

#include "cohort/cluster/rpc/service.h"
#include "cohort/core/task_id.h"
#include "cohort/core/thread_pool.h"
#include "cohort/parameter_server/store/variable_store.h"

namespace cohort::internal {

// Methods: "create", "read", "rows", "apply" (store_message.h). They run on threads of the service's
// own, for `self`.
class StoreService final : public rpc::Service {
 public:
  StoreService(TaskId self, std::shared_ptr<VariableStore> store);

  std::string_view name() const override { return "store"; }
  std::span<const rpc::MethodSpec> methods() const override;
  void handle(size_t method, std::unique_ptr<rpc::Call> call) override;

 private:
  rpc::Message answer(size_t method, const rpc::Message& request) const;

  const TaskId self_;
  const std::shared_ptr<VariableStore> store_;
  ThreadPool pool_;
};

}  // namespace cohort::internal
