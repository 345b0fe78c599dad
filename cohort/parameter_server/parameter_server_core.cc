#include "cohort/parameter_server/parameter_server_core.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <random>
#include <thread>
#include <utility>

#include "cohort/cluster/address.h"
#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/server_core.h"
#include "cohort/cluster/server_registry.h"
#include "cohort/core/error.h"
#include "cohort/core/host/cgroups.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/task.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/thread_pool.h"
#include "cohort/parameter_server/closures/closure_frame.h"
#include "cohort/parameter_server/closures/closure_service.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"
#include "cohort/parameter_server/coordinator/server_save_group.h"
#include "cohort/parameter_server/leadership/leadership_service.h"
#include "cohort/parameter_server/runner/loop_table.h"
#include "cohort/parameter_server/runner/server_runner.h"
#include "cohort/parameter_server/store/store_service.h"
#include "cohort/parameter_server/variables/closure_context.h"
#include "cohort/parameter_server/variables/kept_parts.h"
#include "cohort/parameter_server/variables/make_shards.h"
#include "cohort/parameter_server/variables/push_exchange.h"

namespace cohort::internal {

using distribute::VariableInitializer;
using distribute::VariableSpec;

namespace {

std::string address_of(const train::ClusterSpec& cluster, const TaskId& task) {
  return cluster.task_address(task.job, task.index);
}

int count_of(const train::ClusterSpec& cluster, const char* job) {
  return cluster.has_job(job) ? static_cast<int>(cluster.num_tasks(job)) : 0;
}

// The most workers that one host has, which run their steps beside each other; a coordinator's process
// has them where it has no server of its own.
int workers_on_host(const ParameterServerCore::Setup& setup) {
  if (setup.role == ClusterRole::kCoordinator && setup.server != nullptr) return 1;
  if (!setup.cluster.has_job(kWorker)) return 1;
  std::map<std::string, int> by_host;
  int most = 1;
  for (const auto& [index, address] : setup.cluster.as_dict().at(kWorker)) {
    most = std::max(most, ++by_host[canonical(parse_address(address)).host]);
  }
  return most;
}

// They divide the host's cores, or the quota of their cgroup, except where a launcher has given each
// cores of its own.
int cores_of_worker(const ParameterServerCore::Setup& setup) {
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

LeaderOrigin new_origin() {
  static const uint64_t program = uint64_t{std::random_device()()} << 32 | std::random_device()();
  static std::atomic<uint64_t> made = 0;
  return {.program = program, .made = ++made};
}

}  // namespace

std::shared_ptr<ParameterServerCore> ParameterServerCore::make(Setup setup) {
  const std::shared_ptr<ParameterServerCore> core(new ParameterServerCore(std::move(setup)));
  core->attachment_ =
      attach_to_servers(core, [&self = *core](ServerCore& server) { self.serve(server); });
  if (core->role() == ClusterRole::kCoordinator) core->save_group_ = make_server_save_group(core);
  core->part_keeper_ = make_part_keeper(core);
  core->named_functions().add(
      kRunStep, [weak = std::weak_ptr<ParameterServerCore>(core)](const Structure& arguments) {
        return run_named_step(weak.lock(), arguments);
      });
  return core;
}

ParameterServerCore::ParameterServerCore(Setup setup)
    : LocalStrategy({.name = "ParameterServerStrategy",
                     .devices = setup.devices,
                     .cores = cores_of_worker(setup)}),
      setup_(std::move(setup)),
      num_workers_(count_of(setup_.cluster, kWorker)),
      store_(
          count_of(setup_.cluster, kPs),
          [this](int ps) {
            return channel({kPs, ps});
          },
          [this] { return session(); },
          [this](const std::exception_ptr& error) { return explained(error); }, setup_.timeout),
      placement_(store_.num_ps(), setup_.placement, setup_.partitioner),
      steps_([] { return std::make_unique<TaskStep>(); }),
      sessions_([] { return std::make_unique<std::atomic<SessionId>>(0); }),
      origin_(new_origin()),
      exceptions_(std::uncaught_exceptions()),
      loops_(std::make_unique<LoopTable>()) {
  if (setup_.role == ClusterRole::kCoordinator) {
    released_ = std::make_shared<ReleasedShards>(ReleasedShards::Surroundings{
        .begun = [this] { return begun(); },
        .ended = [this] { return ended(); },
        .release = [this](const ReleasedShards::Shards& shards,
                          const StoreClient::Failed& failed) { store_.release(shards, failed); }});
  }
  if (setup_.role == ClusterRole::kCoordinator && setup_.server == nullptr) {
    const TaskId self{kChief, 0};
    rpc::TransportSettings settings;
    settings.keepalive_time = setup_.keepalive_time;
    settings.keepalive_timeout = setup_.keepalive_timeout;
    channels_ = std::make_unique<ChannelPool>(
        std::make_shared<rpc::Identity>(self, std::random_device()() | 1),
        security::Security::load(distribute::Credentials::from_environment(), self), settings);
  }
}

ParameterServerCore::~ParameterServerCore() {
  if (released_ != nullptr) released_->stop();
  // An answer that is handled at that moment may hold the last reference, on a thread without exceptions.
  const bool by_exception = std::this_thread::get_id() == maker_
                                ? std::uncaught_exceptions() != exceptions_
                                : coordinator_left_by_exception_.load();
  if (by_exception) {
    leave_by_exception();
    return;
  }
  if (setup_.server != nullptr) end_others();
  if (own_server_ != nullptr && !is_left_alone_) wait_for_end();
}

// A server of this cluster, in this process. One that has served an earlier strategy goes on: what
// that one had there goes when this one's coordinator takes the task.
void ParameterServerCore::serve(ServerCore& server) {
  const TaskId& task = server.task();
  if (server.cluster_spec() != setup_.cluster) return;
  if (task.job != kPs && task.job != kWorker) return;
  has_served_ = true;
  if (ServedTask* const there = server.kept<ServedTask>()) return there->add(self());
  const auto fence = std::make_shared<CoordinatorFence>(task);
  if (task.job == kPs) {
    const auto store = std::make_shared<VariableStore>();
    // Another program begins: with variables of its own, and with versions that no worker has seen.
    fence->on_new_generation(
        [store](int64_t generation) { store->clear(generation << kSessionNumberBits); });
    const auto service = std::make_shared<StoreService>(setup_.cluster, task, store, fence);
    server.add(service);
    server.keep<ServedTask>(service);
  } else {
    const auto closures = std::make_shared<ClosureService>(setup_.cluster, task, fence);
    closures->add(self());
    server.add(closures);
    server.keep<ServedTask>(closures);
  }
  server.add(std::make_shared<LeadershipService>(fence));
}

SessionId ParameterServerCore::session() const {
  if (Task::current().job() == kWorker) return sessions_.get().load();
  return session_id(generation_, 0);
}

std::function<void(const std::string&, double)> ParameterServerCore::figures() const {
  if (setup_.server == nullptr) return nullptr;
  return [server = setup_.server](const std::string& name, double value) {
    try {
      server->coordination().set_figure(name, value);
    } catch (const ResourceExhaustedError&) {  // the program has many of its own
    }
  };
}

std::string ParameterServerCore::failure_told_by(const TaskId& task,
                                                 std::chrono::milliseconds wait) const {
  if (setup_.told == nullptr) return "";
  return setup_.told->of(task, std::chrono::steady_clock::now() + wait);
}

std::string ParameterServerCore::last_checkpoint() const {
  const std::lock_guard lock(mutex_);
  return last_checkpoint_;
}

void ParameterServerCore::set_last_checkpoint(const std::string& path) {
  const std::lock_guard lock(mutex_);
  last_checkpoint_ = path;
}

std::shared_ptr<CoordinatorCore> ParameterServerCore::coordinator() const {
  const std::lock_guard lock(mutex_);
  return coordinator_.lock();
}

void ParameterServerCore::set_coordinator(const std::shared_ptr<CoordinatorCore>& coordinator) {
  const std::scoped_lock lock(mutex_, last_mutex_);
  coordinator_ = coordinator;
  closures_ = &coordinator->queue();
}

std::shared_ptr<CoordinatorCore> ParameterServerCore::share_coordinator(
    FunctionRef<std::shared_ptr<CoordinatorCore>()> make) {
  const std::lock_guard lock(shared_mutex_);
  if (auto there = shared_.lock()) return there;
  // Not a deleter: that would live, and hold this strategy, as long as shared_ does.
  struct Running {
    Running(ParameterServerCore& of, std::shared_ptr<CoordinatorCore> made)
        : owner(of), core(std::move(made)) {}
    ~Running() {
      owner.coordinator_left_by_exception_ = std::uncaught_exceptions() != owner.exceptions_;
      core->stop();
    }
    ParameterServerCore& owner;  // which `core` keeps
    const std::shared_ptr<CoordinatorCore> core;
  };
  const auto running = std::make_shared<Running>(*this, make());
  const std::shared_ptr<CoordinatorCore> shared(running, running->core.get());
  shared_ = shared;
  return shared;
}

std::shared_ptr<rpc::Channel> ParameterServerCore::channel(const TaskId& task) const {
  const Task& current = Task::current();
  std::shared_ptr<rpc::Channel> found;
  const auto take = [&](ServerCore& server) { found = server.channel(task); };
  const TaskId self{current.job(), current.index()};
  if (current.job() == kWorker && with_server(setup_.cluster, self, take)) return found;
  if (setup_.server != nullptr) return setup_.server->core().channel(task);
  if (own_server_ != nullptr) return own_server_->core().channel(task);
  if (channels_ != nullptr) return channels_->channel(task, address_of(setup_.cluster, task));
  throw FailedPreconditionError(
      str("this process is no coordinator of the cluster and runs no closure, ",
          "so it cannot reach ", task,
          "; variables are read and written by the coordinator and in "
          "closures"));
}

bool ParameterServerCore::writes_outside_steps() const {
  const bool follows = setup_.role == ClusterRole::kWorker || setup_.role == ClusterRole::kPs;
  return !follows || Task::is_scoped();  // a closure's thread acts for its server
}

// A task reads variables by a server of its own, by which ps tasks know who asks.
bool ParameterServerCore::can_read_variables() const {
  if (setup_.role == ClusterRole::kCoordinator) return true;
  if (setup_.role == ClusterRole::kPs) return has_own_server_;
  return setup_.role == ClusterRole::kWorker && (Task::is_scoped() || has_own_server_);
}

std::vector<std::string> ParameterServerCore::parameter_devices() const {
  std::vector<std::string> devices;
  for (int ps = 0; ps < num_ps(); ++ps) devices.push_back(device_of_ps(ps));
  return devices;
}

std::unique_ptr<StepRunner> ParameterServerCore::make_runner() {
  return std::make_unique<ServerRunner>(self());
}

distribute::InputContext ParameterServerCore::input_context(int worker) const {
  return {.num_input_pipelines = num_workers_,
          .input_pipeline_id = worker,
          .num_replicas_in_sync = num_local_replicas()};
}

distribute::Coordination* ParameterServerCore::coordination() const {
  return setup_.server == nullptr ? nullptr : &setup_.server->coordination();
}

distribute::Server& ParameterServerCore::own_server() {
  if (own_server_ == nullptr) {
    distribute::ServerOptions options = setup_.server_options;
    options.job_name = setup_.self.job;
    options.task_index = setup_.self.index;
    has_own_server_ = true;
    own_server_ = std::make_unique<distribute::Server>(setup_.cluster, options);
  }
  return *own_server_;
}

CoordinatorNumbers ParameterServerCore::begin_closures() {
  lead();
  // Numbers follow the clock: no coordinator schedules so many a second for as long as it lives.
  constexpr uint64_t kMostPerSecond = uint64_t{1} << 16;
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const std::lock_guard lock(mutex_);
  if (std::exchange(has_coordinator_, true)) {
    throw FailedPreconditionError(
        "steps of this strategy are handed out already, by a call of fit, evaluate or predict, or "
        "by a "
        "ClusterCoordinator that is just ending; wait for its end");
  }
  next_.closure = std::max(next_.closure, static_cast<uint64_t>(now.count()) * kMostPerSecond);
  return next_;
}

void ParameterServerCore::end_closures(const CoordinatorNumbers& next) {
  const std::scoped_lock lock(mutex_, last_mutex_);
  next_ = next;
  has_coordinator_ = false;
  closures_ = nullptr;
  coordinator_.reset();  // a thread of its own may hold it a little longer
}

void ParameterServerCore::add_input(const std::string& name, MakeWorkerInput make) {
  const std::lock_guard lock(mutex_);
  if (!inputs_.emplace(name, std::move(make)).second) {
    throw AlreadyExistsError(str("there is a dataset function ", quoted(name), " already"));
  }
}

MakeWorkerInput ParameterServerCore::input(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = inputs_.find(name);
  if (found != inputs_.end()) return found->second;
  throw NotFoundError(str("there is no dataset function ", quoted(name), " in ",
                          Task::current().to_string(),
                          "; every task must add the same functions, before its server's join()"));
}

std::shared_ptr<const void> ParameterServerCore::hold_input(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    if (unnamed_inputs_.erase(name) == 0) return nullptr;
  }
  return {nullptr, [weak = weak_from_this(), name](const void*) {
            const auto core = std::static_pointer_cast<ParameterServerCore>(weak.lock());
            if (core == nullptr) return;
            std::map<std::string, MakeWorkerInput>::node_type dropped;  // freed without the lock
            const std::lock_guard lock(core->mutex_);
            dropped = core->inputs_.extract(name);
          }};
}

bool ParameterServerCore::workers_are_here() const {
  if (setup_.server != nullptr) return false;
  for (int i = 0; i < num_workers_; ++i) {
    if (with_server(setup_.cluster, {kWorker, i}, [](ServerCore&) {})) return true;
  }
  return false;
}

void ParameterServerCore::require_workers_here(const std::string& what) const {
  if (workers_are_here()) return;
  throw FailedPreconditionError(
      str(what, " cannot travel to workers of other processes: declare it by name with ",
          "ParameterServerStrategy::function, in every task, before the program's roles part"));
}

std::string ParameterServerCore::keep_captured_function(StructureFunction<> function) {
  require_workers_here("a function over the program's own objects");
  const std::lock_guard lock(mutex_);
  std::string name = str("captured function ", ++last_captured_);
  captured_.emplace(name, std::move(function));
  return name;
}

void ParameterServerCore::drop_captured_function(const std::string& name) {
  std::map<std::string, StructureFunction<>>::node_type dropped;  // freed without the lock
  const std::lock_guard lock(mutex_);
  dropped = captured_.extract(name);
}

StructureFunction<> ParameterServerCore::captured_function(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = captured_.find(name);
  return found == captured_.end() ? StructureFunction<>() : found->second;
}

std::string ParameterServerCore::new_input_name() {
  const std::lock_guard lock(mutex_);
  std::string name = str("dataset of the coordinator, ", ++last_input_);
  unnamed_inputs_.insert(name);
  return name;
}

void ParameterServerCore::release(ReleasedShards::Shards shards) {
  if (released_ != nullptr && generation_ != 0) released_->add(std::move(shards));
}

// Programs of workers may read what they have made, between calls.
ReleasedShards::Progress ParameterServerCore::begun() const {
  const bool has_others = setup_.server != nullptr && loops_->has_calls();
  const int64_t calls = has_others ? loops_->num_calls() + 1 : 0;
  const std::lock_guard lock(last_mutex_);
  return {.closures = closures_ == nullptr ? 0 : closures_->next_id(),
          .steps = steps_begun_,
          .calls = calls};
}

// A coordinator that has ended has no step under way: ps tasks refuse what its workers still run.
ReleasedShards::Progress ParameterServerCore::ended() const {
  constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
  const bool has_others = setup_.server != nullptr && loops_->has_calls();
  const int64_t calls = has_others ? last_taken_by_all(setup_.server->coordination()) : kEveryCall;
  const std::lock_guard lock(mutex_);
  return {.closures = closures_ == nullptr ? kAll : closures_->oldest_unfinished(),
          .steps = steps_ended_,
          .calls = calls};
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

// The threads of all replicas run the closure: what is restored there, of what they make, has its tokens, too.
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
  step().begin(store_, session());
  LocalStrategy::run(frame, options);
  step().end(store_, session());
}

// The coordinator makes the values; a worker that creates a variable in a step, too, where it is the
// first. Other tasks only learn where they are.
bool ParameterServerCore::makes_values() const {
  return setup_.role == ClusterRole::kCoordinator || Task::current().job() == kWorker;
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
  // What this program has it releases itself. A worker's may be all that has a slot, and releases nothing.
  if (setup_.role == ClusterRole::kCoordinator) {
    for (ServedVariable::Shard& shard : shards) shard.owner.reset();
  }
  auto variable = std::make_shared<ServedVariable>(self(), spec, std::move(shards));
  if (!makes_values()) return variable;
  if (Task::current().job() != kWorker) lead();
  make_shards(*variable, initializer, store_);
  return variable;
}

std::unique_ptr<GradientExchange> ParameterServerCore::make_exchange(
    std::vector<UpdateTarget> targets) {
  return std::make_unique<PushExchange>(std::move(targets), self());
}

}  // namespace cohort::internal
