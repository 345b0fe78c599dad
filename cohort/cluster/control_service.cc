#include "cohort/cluster/control_service.h"

#include <utility>

#include "cohort/cluster/rpc/service.h"
#include "cohort/cluster/where_reply.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

class ControlService : public rpc::Service {
 public:
  ControlService(ServerContext& context, std::function<TaskId()> coordinator)
      : context_(context), coordinator_(std::move(coordinator)) {}

  std::string_view name() const override { return "server"; }
  std::span<const rpc::MethodSpec> methods() const override { return kMethods; }

  void handle(size_t method, std::unique_ptr<rpc::Call> call) override {
    if (method == kWho) {
      const std::string incarnation = hex_digits(context_.identity()->incarnation(), 1);
      call->reply({.control = str(context_.task(), ' ', incarnation)});
      return;
    }
    if (method == kWhere) return call->reply({.control = where().encode()});
    const std::string reason = call->request().control;
    log_info(context_.task(), ": ", call->caller().task, " ends this task",
             reason.empty() ? "" : ": ", reason);
    call->reply({});
    context_.request_stop(reason);
  }

 private:
  enum Method : size_t { kWho, kWhere, kStop };
  static constexpr rpc::MethodSpec kMethods[] = {
      {.name = "who", .callers = rpc::kEverybody, .fenced = false},
      {.name = "where", .callers = rpc::kEverybody, .fenced = false},
      {.name = "stop", .callers = rpc::Role::kCoordinator, .max_control_bytes = 4096},
  };

  WhereReply where() const {
    const train::ClusterSpec spec = context_.cluster_spec();
    const TaskId task = coordinator_();
    return {.self = context_.task(),
            .coordinator = task,
            .address = spec.task_address(task.job, task.index)};
  }

  ServerContext& context_;
  const std::function<TaskId()> coordinator_;
};

}  // namespace

std::shared_ptr<rpc::Service> make_control_service(ServerContext& context,
                                                   std::function<TaskId()> coordinator) {
  return std::make_shared<ControlService>(context, std::move(coordinator));
}

}  // namespace cohort::internal
