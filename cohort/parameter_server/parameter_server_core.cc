#include "cohort/parameter_server/parameter_server_core.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "cohort/cluster/address.h"
#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/server_core.h"
#include "cohort/core/error.h"
#include "cohort/core/host/cgroups.h"
#include "cohort/core/program/task.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/thread_pool.h"
#include "cohort/parameter_server/closures/closure_frame.h"
#include "cohort/parameter_server/closures/served_task.h"
#include "cohort/parameter_server/coordinator/server_save_group.h"
#include "cohort/parameter_server/runner/server_runner.h"
#include "cohort/parameter_server/variables/closure_context.h"
#include "cohort/parameter_server/variables/kept_parts.h"
#include "cohort/parameter_server/variables/make_shards.h"
#include "cohort/parameter_server/variables/push_exchange.h"
#include "cohort/parameter_server/variables/served_variable.h"

namespace cohort::internal {

using distribute::VariableInitializer;
using distribute::VariableSpec;

namespace {

// The most workers that one host has, which run their steps beside each other; a coordinator's
// process has them where it has no server of its own.
int workers_on_host(const PsCluster::Setup& setup) {
  if (setup.role == ClusterRole::kCoordinator && setup.server != nullptr) return 1;
  if (!setup.spec.has_job(kWorker)) return 1;
  std::map<std::string, int> by_host;
  int most = 1;
  for (const auto& [index, address] : setup.spec.as_dict().at(kWorker)) {
    most = std::max(most, ++by_host[canonical(parse_address(address)).host]);
  }
  return most;
}

// They divide the host's cores, or the quota of their cgroup, except where a launcher has given
// each cores of its own.
int cores_of_worker(const PsCluster::Setup& setup) {
  const int on_host =
      cores_under(Cgroups().cpu_quota(), static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
  return std::min(num_usable_cores(), std::max(1, on_host / workers_on_host(setup)));
}

// 63 bits of FNV-1a: ids are the same in every task, whatever else each of them creates.
int64_t id_of(const std::string& name) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return static_cast<int64_t>(hash >> 1);
}

}  // namespace

std::shared_ptr<ParameterServerCore> ParameterServerCore::make(Setup setup) {
  const std::shared_ptr<ParameterServerCore> core(new ParameterServerCore(std::move(setup)));
  core->attachment_ = attach_to_servers(core, [&self = *core](ServerCore& server) {
    if (serve_task(server, self.worker())) self.has_served_ = true;
  });
  if (core->cluster_.is_coordinator()) core->save_group_ = make_server_save_group(core->leader());
  core->variables_.set_part_keeper(make_part_keeper(core->variables()));
  core->named_functions().add(
      kRunStep, [weak = std::weak_ptr<ParameterServerCore>(core)](const Structure& arguments) {
        const auto alive = weak.lock();
        return run_named_step(alive, alive->loops_, arguments);
      });
  return core;
}

ParameterServerCore::ParameterServerCore(Setup setup)
    : LocalStrategy({.name = "ParameterServerStrategy",
                     .devices = setup.devices,
                     .cores = cores_of_worker(setup.cluster)}),
      setup_(std::move(setup)),
      cluster_(setup_.cluster,
               [this](const std::exception_ptr& error) { return leader_.explained(error); }),
      placement_(cluster_.num_ps(), setup_.placement, setup_.partitioner),
      variables_(*this, cluster_, make_released()),
      worker_(*this, variables_,
              [this](std::chrono::steady_clock::time_point deadline) {
                loops_.table.wait_for_program(deadline);
              }),
      leader_(cluster_, worker_),
      loops_{.cluster = cluster_, .workers = worker_, .leader = leader_},
      exceptions_(std::uncaught_exceptions()) {}

ParameterServerCore::~ParameterServerCore() {
  variables_.stop_releases();
  end();
  // Its end waits for answers that are being handled, as long as all else is there.
  cluster_.take_own_server().reset();
}

// Null: this task is no coordinator.
std::shared_ptr<ReleasedShards> ParameterServerCore::make_released() {
  if (!cluster_.is_coordinator()) return nullptr;
  return std::make_shared<ReleasedShards>(ReleasedShards::Surroundings{
      .begun = [this] { return begun(); },
      .ended = [this] { return ended(); },
      .release =
          [this](const ReleasedShards::Shards& shards, const StoreClient::Failed& failed) {
            cluster_.store().release(shards, failed);
          }});
}

std::vector<std::string> ParameterServerCore::parameter_devices() const {
  std::vector<std::string> devices;
  for (int ps = 0; ps < cluster_.num_ps(); ++ps) devices.push_back(device_of_ps(ps));
  return devices;
}

std::unique_ptr<StepRunner> ParameterServerCore::make_runner() {
  return std::make_unique<ServerRunner>(shared_from_this(), loops_);
}

// Programs of workers may read what they have made, between calls.
ReleasedShards::Progress ParameterServerCore::begun() const {
  const bool has_others = cluster_.coordination() != nullptr && loops_.table.has_calls();
  return {.closures = leader_.next_closure(),
          .steps = steps_begun_,
          .calls = has_others ? loops_.table.num_calls() + 1 : 0};
}

ReleasedShards::Progress ParameterServerCore::ended() const {
  const bool has_others = cluster_.coordination() != nullptr && loops_.table.has_calls();
  return {.closures = leader_.oldest_unfinished_closure(),
          .steps = steps_ended_,
          .calls = has_others ? last_taken_by_all(*cluster_.coordination()) : kEveryCall};
}

void ParameterServerCore::run(const std::shared_ptr<RunFrame>& frame,
                              const distribute::RunOptions& options) {
  if (ClosureContext* const closure = current_closure()) {
    return run_in_closure(frame, options, *closure);
  }
  ++steps_begun_;
  struct Ended {
    std::atomic<uint64_t>& steps;
    ~Ended() { ++steps; }
  } ended{steps_ended_};
  run_and_push(frame, options);
}

// The threads of all replicas run the closure: what is restored there, of what they make, has its
// tokens, too.
void ParameterServerCore::run_in_closure(const std::shared_ptr<RunFrame>& frame,
                                         const distribute::RunOptions& options,
                                         ClosureContext& closure) {
  if (num_local_replicas() == 1) return run_and_push(frame, options);
  const auto of_closure = std::make_shared<ClosureFrame>(frame, closure);
  struct Counted {
    ClosureContext& closure;
    ClosureFrame& frame;
    ~Counted() { closure.assignments = frame.assignments(); }
  } counted{closure, *of_closure};
  run_and_push(of_closure, options);
}

void ParameterServerCore::run_and_push(const std::shared_ptr<RunFrame>& frame,
                                       const distribute::RunOptions& options) {
  TaskStep& step = variables_.step();
  step.begin(cluster_.store(), cluster_.session());
  LocalStrategy::run(frame, options);
  step.end(cluster_.store(), cluster_.session());
}

// The coordinator makes the values; a worker that creates a variable in a step, too, where it is
// the first. Other tasks only learn where they are.
bool ParameterServerCore::makes_values() const {
  return cluster_.is_coordinator() || Task::current().job() == kWorker;
}

int64_t ParameterServerCore::next_id(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const int count = names_[name]++;
  return id_of(count == 0 ? name : str(name, '#', count));
}

std::shared_ptr<VariableImpl> ParameterServerCore::create_variable(
    const VariableSpec& spec, const VariableInitializer& initializer) {
  return make_variable("", spec, initializer);
}

std::shared_ptr<VariableImpl> ParameterServerCore::create_variable_on(
    const std::string& device, const VariableSpec& spec, const VariableInitializer& initializer) {
  return make_variable(device, spec, initializer);
}

std::shared_ptr<VariableImpl> ParameterServerCore::make_variable(
    const std::string& device, const VariableSpec& spec, const VariableInitializer& initializer) {
  if (const ClosureContext* closure = current_closure(); closure && closure->makes_input) {
    throw InvalidArgumentError(str(
        "a function that makes a value of each worker makes variable ", quoted(spec.options.name),
        " of the ps tasks; make those under the strategy's scope, ", "before"));
  }
  std::optional<int> ps;
  if (!device.empty()) ps = placement_.ps_of(device, spec.options.name);
  auto shards = placement_.place(spec, next_id(spec.options.name), ps);
  // What this program has it releases itself. A worker's may be all that has a slot, and releases
  // nothing.
  if (cluster_.is_coordinator()) {
    for (PlacedShard& shard : shards) shard.owner.reset();
  }
  auto variable =
      std::make_shared<ServedVariable>(shared_from_this(), variables_, spec, std::move(shards));
  if (!makes_values()) return variable;
  if (Task::current().job() != kWorker) cluster_.lead();
  make_shards(*variable, initializer, cluster_.store());
  return variable;
}

std::unique_ptr<GradientExchange> ParameterServerCore::make_exchange(
    std::vector<UpdateTarget> targets) {
  return std::make_unique<PushExchange>(std::move(targets), shared_from_this(), variables_);
}

}  // namespace cohort::internal
