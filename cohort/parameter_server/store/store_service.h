// Answers what other tasks ask of this ps task's store.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/rpc/service.h"
#include "cohort/core/program/task_id.h"
#include "cohort/core/threads/thread_pool.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"
#include "cohort/parameter_server/store/figure_reporter.h"
#include "cohort/parameter_server/store/store_message.h"
#include "cohort/parameter_server/store/variable_store.h"

namespace cohort::internal {

// Methods: "create", "read", "rows", "apply", "push_pull", "release", "load" (store_message.h);
// "keep", "write_kept", "read_kept", "drop_kept", "read_parts", "send_part", "adopt_parts",
// "drop_parts" (kept_message.h). They run on threads of the service's own, for `self`, writing
// files on one; small ones run where they arrive, if that is a thread for their caller alone. What
// changes variables, or what is kept or read for them, must pass the fence.
class StoreService final : public rpc::Service {
 public:
  StoreService(const train::ClusterSpec& cluster, TaskId self, std::shared_ptr<VariableStore> store,
               std::shared_ptr<CoordinatorFence> fence);

  std::string_view name() const override { return "store"; }
  std::span<const rpc::MethodSpec> methods() const override;
  void handle(size_t method, std::unique_ptr<rpc::Call> call) override;

 private:
  void run(size_t method, rpc::Call& call) const;
  rpc::Message answer(size_t method, const rpc::Message& request) const;
  void create(const CreateRequest& creation) const;
  void apply(const ApplyRequest& push) const;
  ReadReply values_of(const ReadRequest& read, const RowsRequest& rows) const;
  VariableStore::Load load() const;
  rpc::Message pass_and_answer(size_t method, const rpc::Call& call) const;

  const TaskId self_;
  const std::string self_name_;
  const std::shared_ptr<VariableStore> store_;
  const std::shared_ptr<CoordinatorFence> fence_;
  mutable FigureReporter figures_;
  mutable std::atomic<int64_t> bytes_in_{0};
  mutable std::atomic<int64_t> bytes_out_{0};
  ThreadPool pool_;
  ThreadPool file_pool_;  // a slow disk keeps no push waiting
};

}  // namespace cohort::internal
