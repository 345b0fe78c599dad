#include "cohort/parameter_server/closure_service.h"

#include <utility>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/task.h"
#include "cohort/distribute/distributed_iterator.h"
#include "cohort/distribute/input_context.h"
#include "cohort/distribute/structure_message.h"
#include "cohort/parameter_server/closure_context.h"
#include "cohort/parameter_server/parameter_server_core.h"

namespace cohort::internal {
namespace {

enum ClosureMethod : size_t { kRun, kMakeInput, kHello };
constexpr rpc::MethodSpec kClosureMethods[] = {
    {.name = "run",
     .callers = rpc::Role::kCoordinator,
     .max_bulk_bytes = kMostClosureBytes,
     .fenced = false},
    {.name = "make_input", .callers = rpc::Role::kCoordinator, .fenced = false},
    {.name = "hello", .callers = rpc::Role::kCoordinator, .fenced = false},
};

}  // namespace

ClosureService::ClosureService(TaskId self, std::weak_ptr<ParameterServerCore> core)
    : self_(std::move(self)), core_(std::move(core)), pool_("closures", 1) {}

ClosureService::~ClosureService() = default;

std::span<const rpc::MethodSpec> ClosureService::methods() const { return kClosureMethods; }

void ClosureService::handle(size_t method, std::unique_ptr<rpc::Call> call) {
  const ScopedTask as_this_server(Task::named(self_.job, self_.index));
  pool_.schedule([this, method, call = std::shared_ptr<rpc::Call>(std::move(call))] {
    try {
      call->reply(answer(method, call->request()));
    } catch (...) {
      const std::exception_ptr thrown = std::current_exception();
      const ErrorRecord error = record_error(thrown);
      call->fail(rpc::make_error(error.code, error.message,
                                 error.task.empty() ? to_string(self_) : error.task,
                                 rpc::detail_of(thrown)));
    }
  });
}

rpc::Message ClosureService::answer(size_t method, const rpc::Message& request) {
  if (method == kHello) return {.control = ""};
  const std::shared_ptr<ParameterServerCore> core = core_.lock();
  if (core == nullptr) throw CancelledError("the worker's strategy has ended");
  if (method == kRun) return run(*core, decode_run_closure(request));
  make_input(*core, decode_make_input(request));
  return {.control = ""};
}

rpc::Message ClosureService::run(ParameterServerCore& core, const RunClosure& closure) {
  ClosureContext context{
      .id = closure.id, .forget_below = closure.forget_below, .worker = self_.index};
  for (const uint64_t id : closure.inputs) {
    const auto found = inputs_.find(id);
    if (found == inputs_.end()) {
      std::rethrow_exception(rpc::make_error(
          Code::kFailedPrecondition, str(self_, " has no input ", id, ": it was started again"),
          to_string(self_), {.phase = kInputLost}));
    }
    if (found->second.error != nullptr) {
      const ErrorRecord error = record_error(found->second.error);
      throw_error(error.code, str("the input of this closure could not be made: ", error.message),
                  error.task);
    }
    context.inputs.push_back(found->second.iterator.get());
  }
  const ScopedClosure scoped(context);
  return to_message(core.named_functions().call_here(closure.function, closure.arguments));
}

void ClosureService::make_input(ParameterServerCore& core, const MakeInput& request) {
  Input& input = inputs_[request.input];
  input = {};
  try {
    ClosureContext context{.worker = self_.index};
    const ScopedClosure scoped(context);
    input.iterator =
        core.input(request.function)({.num_input_pipelines = core.num_workers(),
                                      .input_pipeline_id = self_.index,
                                      .num_replicas_in_sync = core.num_local_replicas()});
  } catch (...) {  // whoever uses it gets the error
    input.error = std::current_exception();
    throw;
  }
}

}  // namespace cohort::internal
