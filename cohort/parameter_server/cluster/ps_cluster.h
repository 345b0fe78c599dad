// The cluster of a ParameterServerStrategy as one of its tasks sees it: who takes part, the
// channels to them, the stores of the ps tasks, and which coordinator leads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "cohort/cluster/channel_pool.h"
#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/server.h"
#include "cohort/core/program/per_task.h"
#include "cohort/core/program/task_id.h"
#include "cohort/parameter_server/cluster/reported_failures.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"
#include "cohort/parameter_server/store/store_client.h"

namespace cohort::internal {

// The part that this process has. In an in-process cluster the program is the coordinator, and
// threads of the servers act for workers (core/task.h).
enum class ClusterRole { kCoordinator, kWorker, kPs, kEvaluator };

// Thread safety: any thread, but own_server, which one thread calls first.
class PsCluster {
 public:
  struct Setup {
    train::ClusterSpec spec;
    ClusterRole role = ClusterRole::kCoordinator;
    std::chrono::milliseconds timeout = std::chrono::minutes(1);  // of a call to a ps task
    // The keepalive time of a coordinator without a server.
    std::chrono::milliseconds keepalive_time{10'000};
    std::chrono::milliseconds keepalive_timeout{10'000};
    // The coordinator's own server, where it has one.
    std::shared_ptr<distribute::Server> server = nullptr;
    // What tasks have told it of their failures; null where it has no server.
    std::shared_ptr<const ReportedFailures> told = nullptr;
    // The task that this process is, and how it serves, if it is a worker or a ps task.
    TaskId self = {};
    distribute::ServerOptions server_options = {};
  };
  // `explain`: see StoreClient.
  PsCluster(Setup setup, StoreClient::Explain explain);

  const Setup& setup() const { return setup_; }
  const train::ClusterSpec& spec() const { return setup_.spec; }
  ClusterRole role() const { return setup_.role; }
  bool is_coordinator() const { return role() == ClusterRole::kCoordinator; }
  int num_workers() const { return num_workers_; }
  int num_ps() const { return store_.num_ps(); }

  // Whether what the calling code assigns outside of steps counts. Every task runs the same
  // program: what it assigns between steps, the coordinator assigns.
  bool writes_outside_steps() const;
  bool can_read_variables() const;
  // Whether workers are threads of servers of this process.
  bool workers_are_here() const;
  // Errors: FailedPrecondition (the workers are other processes; says what cannot travel to them).
  void require_workers_here(const std::string& what) const;

  // The calling task's channel to another. Errors: FailedPrecondition (its address is not known).
  std::shared_ptr<rpc::Channel> channel(const TaskId& task) const;
  // The stores of the ps tasks, whatever push of the calling task is under way
  // (VariableHost::store).
  const StoreClient& store() const { return store_; }
  // Whether a ps task that this program has taken does not answer over a new connection either.
  bool is_silent(int ps) const;

  // The chief's; nullptr where the cluster is in this process.
  distribute::Coordination* coordination() const;
  // The server of a worker or ps task, which it starts with the first call. Errors: those of
  // Server.
  distribute::Server& own_server();
  // Whether this task's program has come to a call of fit, evaluate or predict.
  bool has_own_server() const { return has_own_server_; }
  // Null: the task has not started one.
  distribute::Server* running_server() const { return own_server_.get(); }
  // Hands it over; channels of this task end with it.
  std::unique_ptr<distribute::Server> take_own_server() { return std::move(own_server_); }
  // The failure that another task has told this one, the coordinator. It is waited for at most so
  // long; empty: nothing was told.
  std::string failure_told_by(const TaskId& task, std::chrono::milliseconds wait = {}) const;
  // Makes a number of the coordinator known to `cohort cluster status`; null where it has no
  // server.
  std::function<void(const std::string&, double)> figures() const;

  // Takes the ps tasks, unless this coordinator has them already. Its generation is higher than
  // that of any coordinator before; what those have left on the ps tasks is gone then. Generations
  // follow the clock of the wall, since workers may remember one that ps tasks, started again, do
  // not.
  // Errors: Unavailable (a ps task cannot be reached; names it).
  void lead();
  // The generation of this coordinator; 0: it does not lead yet.
  int64_t generation() const { return generation_; }
  // Sets the session of the closure that the current task, a worker, runs.
  void set_session(SessionId session) { sessions_.get().store(session); }
  // The session in which the calling task works: a worker's is that of its closure, any other
  // task's the coordinator's.
  SessionId session() const;

 private:
  // Returns the highest generation that a ps task had or has; a ps task whose generation is not
  // below `generation` was not taken.
  int64_t take_all(int64_t generation) const;

  const Setup setup_;
  const int num_workers_;
  const StoreClient::Explain explain_;
  std::unique_ptr<ChannelPool> channels_;  // of a coordinator without a server
  StoreClient store_;
  PerTask<std::atomic<SessionId>> sessions_;
  std::mutex lead_mutex_;  // held while it takes the ps tasks
  std::atomic<int64_t> generation_{0};
  const LeaderOrigin origin_;
  std::atomic<bool> has_own_server_{false};  // set before it answers
  std::unique_ptr<distribute::Server> own_server_;
};

}  // namespace cohort::internal
