#include "cohort/cluster/membership/coordination_service.h"

#include "cohort/cluster/membership/coordination_core.h"

namespace cohort::internal::membership {
namespace {

using rpc::kEverybody;
using rpc::kEveryTask;

// Large messages travel as bulk (message_body.h). Besides what is counted here a message has a
// name.
constexpr size_t kMostRest = size_t{64} << 10;
constexpr size_t kMostProgramBytes = kMostSections * (kMostSectionBytes + kMostNameBytes);

// This service decides itself what is stale: a task that is behind by one generation must still be
// able to learn of the next.
constexpr rpc::MethodSpec kMethods[] = {
    {.name = "register",
     .callers = kEveryTask,
     .max_bulk_bytes = kMostSpecBytes + kMostProgramBytes + kMostRecordBytes + kMostRest,
     .fenced = false},
    {.name = "heartbeat", .callers = kEveryTask, .fenced = false},
    {.name = "watch", .callers = kEveryTask, .fenced = false},
    {.name = "attend", .callers = kEveryTask, .fenced = false},
    {.name = "leave", .callers = kEveryTask, .fenced = false},
    {.name = "report", .callers = kEveryTask, .fenced = false},
    {.name = "declare",
     .callers = kEveryTask,
     .max_bulk_bytes = kMostProgramBytes + kMostRest,
     .fenced = false},
    {.name = "barrier",
     .callers = kEveryTask,
     .max_bulk_bytes = kMostTasks * kMostNameBytes + kMostRest,
     .fenced = false},
    {.name = "get", .callers = kEveryTask, .fenced = false},
    {.name = "set",
     .callers = kEveryTask,
     .max_bulk_bytes = kMostValueBytes + kMostRest,
     .fenced = false},
    {.name = "add", .callers = kEveryTask, .fenced = false},
    {.name = "compare_and_set",
     .callers = kEveryTask,
     .max_bulk_bytes = 2 * kMostValueBytes + kMostRest,
     .fenced = false},
    {.name = "remove", .callers = kEveryTask, .fenced = false},
    {.name = "list", .callers = kEveryTask, .fenced = false},
    {.name = "status", .callers = kEverybody, .fenced = false},
    {.name = "standing", .callers = kEveryTask, .fenced = false},
};

}  // namespace

CoordinationService::CoordinationService(rpc::Clock& clock, CoordinationOptions options)
    : core_(std::make_shared<CoordinationCore>(clock, std::move(options))) {
  core_->start();
}

CoordinationService::~CoordinationService() { core_->stop(); }

std::span<const rpc::MethodSpec> CoordinationService::methods() const { return kMethods; }

std::span<const rpc::MethodSpec> coordination_methods() { return kMethods; }

void CoordinationService::handle(size_t method, std::unique_ptr<rpc::Call> call) {
  core_->handle(method, std::move(call));
}

void CoordinationService::stop() { core_->stop(); }

void CoordinationService::connection_lost(const TaskId& task, uint64_t incarnation) {
  core_->connection_lost({task, incarnation});
}

void CoordinationService::process_gone(const TaskId& task, uint64_t incarnation) {
  core_->process_gone({task, incarnation});
}

void CoordinationService::absent(const TaskId& task) { core_->absent(task); }

void CoordinationService::fail(const std::exception_ptr& error) { core_->fail(error); }

View CoordinationService::status() const { return core_->status(); }

int64_t CoordinationService::stale_refused() const { return core_->stale_refused(); }

}  // namespace cohort::internal::membership
