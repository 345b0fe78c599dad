#include "cohort/parameter_server/parameter_server_core.h"

#include <algorithm>
#include <exception>
#include <future>
#include <random>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/server_core.h"
#include "cohort/cluster/server_registry.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/task.h"
#include "cohort/core/text.h"
#include "cohort/distribute/colocation.h"
#include "cohort/distribute/variable_creation.h"
#include "cohort/parameter_server/closure_service.h"
#include "cohort/parameter_server/push_exchange.h"
#include "cohort/parameter_server/store/store_service.h"

namespace cohort::internal {

using distribute::ShardInfo;
using distribute::VariableInitializer;
using distribute::VariableSpec;

namespace {

std::string address_of(const train::ClusterSpec& cluster, const TaskId& task) {
  return cluster.task_address(task.job, task.index);
}

int count_of(const train::ClusterSpec& cluster, const char* job) {
  return cluster.has_job(job) ? static_cast<int>(cluster.num_tasks(job)) : 0;
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
  core->attachment_ =
      attach_to_servers([weak = std::weak_ptr<ParameterServerCore>(core)](ServerCore& server) {
        if (const auto alive = weak.lock()) alive->serve(server);
      });
  return core;
}

ParameterServerCore::ParameterServerCore(Setup setup)
    : LocalStrategy({.name = "ParameterServerStrategy", .devices = setup.devices}),
      setup_(std::move(setup)),
      num_workers_(count_of(setup_.cluster, kWorker)),
      store_(
          count_of(setup_.cluster, kPs),
          [this](int ps) {
            return channel({kPs, ps});
          },
          setup_.timeout),
      steps_([] { return std::make_unique<TaskStep>(); }),
      exceptions_(std::uncaught_exceptions()) {
  if (setup_.role == ClusterRole::kCoordinator && setup_.server == nullptr) {
    const TaskId self{kChief, 0};
    channels_ = std::make_unique<ChannelPool>(
        std::make_shared<rpc::Identity>(self, std::random_device()() | 1),
        security::Security::load(distribute::Credentials::from_environment(), self),
        rpc::TransportSettings());
  }
}

ParameterServerCore::~ParameterServerCore() {
  if (setup_.server != nullptr && std::uncaught_exceptions() == exceptions_) end_others();
}

// The other tasks' join() returns 0. After an error they stay, for a coordinator that starts again.
void ParameterServerCore::end_others() noexcept {
  constexpr std::chrono::seconds kPatience{2};
  try {
    std::vector<std::future<void>> ended;
    for (const auto& [job, tasks] : setup_.cluster.as_dict()) {
      if (job != kWorker && job != kPs) continue;
      for (const auto& [index, address] : tasks) {
        auto promise = std::make_shared<std::promise<void>>();
        ended.push_back(promise->get_future());
        channel({job, index})
            ->start("server/stop", {.control = "the training has ended"}, {.timeout = kPatience},
                    [promise](const rpc::CallResult&) { promise->set_value(); });
      }
    }
    for (std::future<void>& end : ended) end.wait();  // each call has its deadline
  } catch (const std::exception& error) {
    log_info("the other tasks were not told of the end: ", error.what());
  }
}

// A server of this cluster, in this process.
void ParameterServerCore::serve(ServerCore& server) {
  const TaskId& task = server.task();
  if (server.cluster_spec() != setup_.cluster) return;
  if (task.job == kPs) {
    server.add(std::make_shared<StoreService>(task, std::make_shared<VariableStore>()));
  }
  if (task.job == kWorker) server.add(std::make_shared<ClosureService>(task, self()));
}

std::shared_ptr<rpc::Channel> ParameterServerCore::channel(const TaskId& task) const {
  const Task& current = Task::current();
  std::shared_ptr<rpc::Channel> found;
  const auto take = [&](ServerCore& server) { found = server.channel(task); };
  if (current.job() == kWorker && with_server({current.job(), current.index()}, take)) return found;
  if (setup_.server != nullptr) return setup_.server->core().channel(task);
  if (channels_ != nullptr) return channels_->channel(task, address_of(setup_.cluster, task));
  throw FailedPreconditionError(
      str("this process is no coordinator of the cluster and runs no closure, ",
          "so it cannot reach ", task,
          "; variables are read and written by the coordinator and in "
          "closures"));
}

uint64_t ParameterServerCore::begin_closures() {
  // By the clock: no coordinator schedules so many a second for as long as it lives.
  constexpr uint64_t kMostPerSecond = uint64_t{1} << 16;
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const std::lock_guard lock(mutex_);
  if (std::exchange(has_coordinator_, true)) {
    throw FailedPreconditionError(
        "this strategy has a ClusterCoordinator already; use that one, or end it first");
  }
  next_closure_ = std::max(next_closure_, static_cast<uint64_t>(now.count()) * kMostPerSecond);
  return next_closure_;
}

void ParameterServerCore::end_closures(uint64_t next) {
  const std::lock_guard lock(mutex_);
  next_closure_ = next;
  has_coordinator_ = false;
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

void ParameterServerCore::run(const std::shared_ptr<RunFrame>& frame,
                              const distribute::RunOptions& options) {
  step().begin(store());
  LocalStrategy::run(frame, options);
  step().end(store());
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

std::vector<ServedVariable::Shard> ParameterServerCore::place(const VariableSpec& spec,
                                                              int64_t id) {
  std::vector<ServedVariable::Shard> shards;
  if (const auto* beside = dynamic_cast<const ServedVariable*>(colocated_with())) {
    if (beside->shape() == at::IntArrayRef(spec.shape)) {  // shard for shard
      shards = beside->shards();
    } else {
      const RowRange all{0, spec.shape.empty() ? 1 : spec.shape[0]};
      shards = {{{beside->shards()[0].place.ps, {}}, all}};
    }
    for (size_t i = 0; i < shards.size(); ++i) {
      shards[i].place.key = {id, static_cast<int64_t>(i)};
    }
    return shards;
  }
  const int64_t count = shards_of(setup_.partitioner, spec.options.name, spec.shape, spec.dtype);
  const std::lock_guard lock(mutex_);
  for (const RowRange& rows : split_rows(spec.shape.empty() ? 1 : spec.shape[0], count)) {
    shards.push_back({{next_ps_, {id, static_cast<int64_t>(shards.size())}}, rows});
    next_ps_ = (next_ps_ + 1) % store_.num_ps();
  }
  return shards;
}

std::shared_ptr<VariableImpl> ParameterServerCore::create_variable(
    const VariableSpec& spec, const VariableInitializer& initializer) {
  const std::string& name = spec.options.name;
  auto variable = std::make_shared<ServedVariable>(self(), spec, place(spec, next_id(name)));
  if (!makes_values()) return variable;
  for (const ServedVariable::Shard& shard : variable->shards()) {
    ShardInfo part = ShardInfo::whole(spec.shape);
    const bool whole = variable->shards().size() == 1;
    if (!whole) {
      part.offset[0] = shard.rows.begin;
      part.shape[0] = shard.rows.size();
    }
    store_.create(shard.place, whole ? name : str(name, "/part_", shard.place.key.shard),
                  make_initial_value(spec, initializer, part).contiguous());
  }
  return variable;
}

std::unique_ptr<GradientExchange> ParameterServerCore::make_exchange(
    std::vector<UpdateTarget> targets) {
  return std::make_unique<PushExchange>(std::move(targets), self());
}

}  // namespace cohort::internal
