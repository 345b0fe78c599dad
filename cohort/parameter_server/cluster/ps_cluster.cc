#include "cohort/parameter_server/cluster/ps_cluster.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <random>
#include <ratio>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/server_core.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/task.h"
#include "cohort/parameter_server/leadership/leadership_message.h"

namespace cohort::internal {
namespace {

std::string address_of(const train::ClusterSpec& cluster, const TaskId& task) {
  return cluster.task_address(task.job, task.index);
}

int count_of(const train::ClusterSpec& cluster, const char* job) {
  return cluster.has_job(job) ? static_cast<int>(cluster.num_tasks(job)) : 0;
}

LeaderOrigin new_origin() {
  static const uint64_t program = uint64_t{std::random_device()()} << 32 | std::random_device()();
  static std::atomic<uint64_t> made = 0;
  return {.program = program, .made = ++made};
}

// Tenths of a second since 2026 began, of which there are generations for 27 years. No program
// starts again in less.
int64_t generation_of_now() {
  using std::chrono::sys_days;
  constexpr sys_days kBegin = std::chrono::year(2026) / 1 / 1;
  using Tenths = std::chrono::duration<int64_t, std::deci>;
  const auto since = std::chrono::floor<Tenths>(std::chrono::system_clock::now() - kBegin);
  return std::max(int64_t{1}, since.count());
}

}  // namespace

PsCluster::PsCluster(Setup setup, StoreClient::Explain explain)
    : setup_(std::move(setup)),
      num_workers_(count_of(setup_.spec, kWorker)),
      explain_(std::move(explain)),
      store_(
          count_of(setup_.spec, kPs),
          [this](int ps) {
            return channel({kPs, ps});
          },
          [this] { return session(); }, explain_, setup_.timeout),
      sessions_([] { return std::make_unique<std::atomic<SessionId>>(0); }),
      origin_(new_origin()) {
  if (!is_coordinator() || setup_.server != nullptr) return;
  const TaskId self{kChief, 0};
  rpc::TransportSettings settings;
  settings.keepalive_time = setup_.keepalive_time;
  settings.keepalive_timeout = setup_.keepalive_timeout;
  channels_ = std::make_unique<ChannelPool>(
      std::make_shared<rpc::Identity>(self, std::random_device()() | 1),
      security::Security::load(distribute::Credentials::from_environment(), self), settings);
}

bool PsCluster::writes_outside_steps() const {
  const bool follows = setup_.role == ClusterRole::kWorker || setup_.role == ClusterRole::kPs;
  return !follows || Task::is_scoped();  // a closure's thread acts for its server
}

// A task reads variables by a server of its own, by which ps tasks know who asks.
bool PsCluster::can_read_variables() const {
  if (is_coordinator()) return true;
  if (setup_.role == ClusterRole::kPs) return has_own_server_;
  return setup_.role == ClusterRole::kWorker && (Task::is_scoped() || has_own_server_);
}

bool PsCluster::workers_are_here() const {
  if (setup_.server != nullptr) return false;
  for (int i = 0; i < num_workers_; ++i) {
    if (with_server(setup_.spec, {kWorker, i}, [](ServerCore&) {})) return true;
  }
  return false;
}

void PsCluster::require_workers_here(const std::string& what) const {
  if (workers_are_here()) return;
  throw FailedPreconditionError(
      str(what, " cannot travel to workers of other processes: declare it by name with ",
          "ParameterServerStrategy::function, in every task, before the program's roles part"));
}

std::shared_ptr<rpc::Channel> PsCluster::channel(const TaskId& task) const {
  const Task& current = Task::current();
  std::shared_ptr<rpc::Channel> found;
  const auto take = [&](ServerCore& server) { found = server.channel(task); };
  const TaskId self{current.job(), current.index()};
  if (current.job() == kWorker && with_server(setup_.spec, self, take)) return found;
  if (setup_.server != nullptr) return setup_.server->core().channel(task);
  if (own_server_ != nullptr) return own_server_->core().channel(task);
  if (channels_ != nullptr) return channels_->channel(task, address_of(setup_.spec, task));
  throw FailedPreconditionError(
      str("this process is no coordinator of the cluster and runs no closure, ",
          "so it cannot reach ", task,
          "; variables are read and written by the coordinator and in "
          "closures"));
}

bool PsCluster::is_silent(int ps) const {
  constexpr std::chrono::milliseconds kGrace{300};  // as ClusterCoordinatorOptions::ps_grace
  if (generation_ == 0) return false;
  const auto to_it = channel({kPs, ps});
  to_it->retry_now();
  const auto promise = std::make_shared<std::promise<std::exception_ptr>>();
  to_it->start("leadership/hello", encode(LeaderClaim{.generation = generation_}),
               {.timeout = kGrace},
               [promise](const rpc::CallResult& result) { promise->set_value(result.error); });
  const std::exception_ptr error = promise->get_future().get();  // the call has its deadline
  return error != nullptr;
}

distribute::Coordination* PsCluster::coordination() const {
  return setup_.server == nullptr ? nullptr : &setup_.server->coordination();
}

distribute::Server& PsCluster::own_server() {
  if (own_server_ == nullptr) {
    distribute::ServerOptions options = setup_.server_options;
    options.job_name = setup_.self.job;
    options.task_index = setup_.self.index;
    has_own_server_ = true;
    own_server_ = std::make_unique<distribute::Server>(setup_.spec, options);
  }
  return *own_server_;
}

std::string PsCluster::failure_told_by(const TaskId& task, std::chrono::milliseconds wait) const {
  if (setup_.told == nullptr) return "";
  return setup_.told->of(task, std::chrono::steady_clock::now() + wait);
}

std::function<void(const std::string&, double)> PsCluster::figures() const {
  if (setup_.server == nullptr) return nullptr;
  return [server = setup_.server](const std::string& name, double value) {
    try {
      server->coordination().set_figure(name, value);
    } catch (const ResourceExhaustedError&) {  // the program has many of its own
    }
  };
}

SessionId PsCluster::session() const {
  if (Task::current().job() == kWorker) return sessions_.get().load();
  return session_id(generation_, 0);
}

void PsCluster::lead() {
  const std::lock_guard lock(lead_mutex_);
  if (generation_ != 0) return;
  int64_t generation = generation_of_now();
  int64_t met = take_all(generation);
  while (met >= generation) {
    generation = met + 1;
    met = std::max(met, take_all(generation));
  }
  generation_ = generation;
  if (met > 0) {
    log_info("this coordinator has generation ", generation, "; earlier ones are refused");
  }
}

int64_t PsCluster::take_all(int64_t generation) const {
  std::vector<std::future<rpc::CallResult>> answers;
  for (int ps = 0; ps < store_.num_ps(); ++ps) {
    auto promise = std::make_shared<std::promise<rpc::CallResult>>();
    answers.push_back(promise->get_future());
    const LeaderClaim claim{.generation = generation, .origin = origin_};
    channel({kPs, ps})->start(
        "leadership/take", encode(claim), {.timeout = setup_.timeout},
        [promise](rpc::CallResult result) { promise->set_value(std::move(result)); });
  }
  int64_t met = 0;
  std::exception_ptr failed;
  for (auto& answer : answers) {
    const rpc::CallResult result = answer.get();  // each call has its deadline
    if (result.error == nullptr) {
      met = std::max(met, decode_leader_claim(result.reply).generation);
    } else if (const ErrorDetail detail = rpc::detail_of(result.error);
               detail.cause == Cause::kFenced) {
      met = std::max(met, detail.generation);
    } else {
      failed = result.error;
    }
  }
  if (failed != nullptr) std::rethrow_exception(explain_(failed));
  return met;
}

}  // namespace cohort::internal
