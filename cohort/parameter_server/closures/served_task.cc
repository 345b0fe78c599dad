#include "cohort/parameter_server/closures/served_task.h"

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/server_core.h"
#include "cohort/parameter_server/closures/closure_service.h"
#include "cohort/parameter_server/leadership/leadership_service.h"
#include "cohort/parameter_server/store/store_service.h"

namespace cohort::internal {
namespace {

void serve_store(ServerCore& server) {
  if (server.kept<StoreService>() != nullptr) return;
  const auto fence = std::make_shared<CoordinatorFence>(server.task());
  const auto store = std::make_shared<VariableStore>();
  // Another program begins: with variables of its own, and with versions that no worker has seen.
  fence->on_new_generation(
      [store](int64_t generation) { store->clear(generation << kSessionNumberBits); });
  const auto service =
      std::make_shared<StoreService>(server.cluster_spec(), server.task(), store, fence);
  server.add(service);
  server.keep(service);
  server.add(std::make_shared<LeadershipService>(fence));
}

void serve_closures(ServerCore& server, const std::weak_ptr<WorkerSide>& worker) {
  if (auto* const there = server.kept<ClosureService>()) return there->add(worker);
  const auto fence = std::make_shared<CoordinatorFence>(server.task());
  const auto service =
      std::make_shared<ClosureService>(server.cluster_spec(), server.task(), fence);
  service->add(worker);
  server.add(service);
  server.keep(service);
  server.add(std::make_shared<LeadershipService>(fence));
}

}  // namespace

bool serve_task(ServerCore& server, const std::weak_ptr<WorkerSide>& worker) {
  const auto side = worker.lock();
  if (side == nullptr || server.cluster_spec() != side->cluster().spec()) return false;
  const std::string& job = server.task().job;
  if (job == kPs) serve_store(server);
  if (job == kWorker) serve_closures(server, worker);
  return job == kPs || job == kWorker;
}

std::string end_functions(WorkerSide& worker, SessionId below,
                          std::chrono::steady_clock::time_point deadline) {
  FunctionsInUse& in_use = worker.functions().in_use();
  in_use.refuse_below(below);
  for (int index = 0; index < worker.cluster().num_workers(); ++index) {
    with_server(worker.cluster().spec(), {kWorker, index}, [&](ServerCore& server) {
      auto* const closures = server.kept<ClosureService>();
      if (closures != nullptr) closures->drop_inputs_below(below);
    });
  }
  return in_use.wait_for_end(below, deadline);
}

// A ps task's store answers calls, and has nothing of the program's.
bool wait_until_idle(const train::ClusterSpec& cluster, const TaskId& task,
                     std::chrono::steady_clock::time_point deadline) {
  ClosureService* closures = nullptr;
  with_server(cluster, task, [&](ServerCore& server) { closures = server.kept<ClosureService>(); });
  return closures == nullptr || closures->wait_until_idle(deadline);
}

}  // namespace cohort::internal
