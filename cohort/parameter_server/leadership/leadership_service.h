// Lets a coordinator take this task, learn at once when the task is lost, and refuse workers.
#pragma once

#include <memory>

#include "cohort/cluster/rpc/service.h"
#include "cohort/core/program/task_id.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"

namespace cohort::internal {

// Methods, which only a coordinator of the cluster may call:
//   take           the caller is the coordinator from here on; of a worker, a new session begins
//   hello          answers, if the caller is
//   attend         the same, kept open until this task ends or another coordinator takes it
//   refuse_worker  see RefuseWorker
// Errors of all: those of CoordinatorFence. Thread safety: any thread.
class LeadershipService final : public rpc::Service {
 public:
  explicit LeadershipService(std::shared_ptr<CoordinatorFence> fence);

  std::string_view name() const override { return "leadership"; }
  std::span<const rpc::MethodSpec> methods() const override;
  void handle(size_t method, std::unique_ptr<rpc::Call> call) override;
  void stop() override;

 private:
  class Attendance;

  const std::shared_ptr<CoordinatorFence> fence_;
  const std::shared_ptr<Attendance> attendance_;  // calls may outlive the service
};

}  // namespace cohort::internal
