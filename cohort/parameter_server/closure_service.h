// Runs closures for the coordinator, one after another, in the order in which they come.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "cohort/cluster/rpc/service.h"
#include "cohort/core/task_id.h"
#include "cohort/core/thread_pool.h"
#include "cohort/parameter_server/closure_message.h"

namespace cohort::distribute {
class DistributedIterator;
}

namespace cohort::internal {

class ParameterServerCore;

// Methods: "run", "make_input", and "hello", which answers when the worker is there. Only the cluster's
// coordinator may call them.
class ClosureService final : public rpc::Service {
 public:
  // `core` must live as long as calls come; it is asked whether it does.
  ClosureService(TaskId self, std::weak_ptr<ParameterServerCore> core);
  ~ClosureService() override;

  std::string_view name() const override { return "closures"; }
  std::span<const rpc::MethodSpec> methods() const override;
  void handle(size_t method, std::unique_ptr<rpc::Call> call) override;

 private:
  // An input, or why there is none.
  struct Input {
    std::unique_ptr<distribute::DistributedIterator> iterator;
    std::exception_ptr error;
  };

  rpc::Message answer(size_t method, const rpc::Message& request);
  rpc::Message run(ParameterServerCore& core, const RunClosure& closure);
  void make_input(ParameterServerCore& core, const MakeInput& request);

  const TaskId self_;
  const std::weak_ptr<ParameterServerCore> core_;
  std::map<uint64_t, Input> inputs_;  // of the pool's one thread
  ThreadPool pool_;
};

}  // namespace cohort::internal
