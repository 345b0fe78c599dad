// A server's place in the membership of its cluster: its agent, and in the task that coordinates
// the service itself.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "cohort/cluster/membership/agent.h"
#include "cohort/cluster/membership/coordination_service.h"
#include "cohort/cluster/membership/elastic_service.h"
#include "cohort/cluster/rpc/fence.h"
#include "cohort/cluster/rpc/system_clock.h"
#include "cohort/cluster/server_context.h"
#include "cohort/cluster/server_options.h"

namespace cohort::internal {

// How soon a silent task of this cluster counts as lost.
membership::HeartbeatSettings heartbeat_of(const train::ClusterSpec& spec,
                                           const distribute::ServerOptions& options);

// Tells other parts of the library what happens to the tasks of a cluster. One call at a time, on
// any thread; calls must not block.
class MembershipListener {
 public:
  virtual ~MembershipListener() = default;
  // Called with each new view, which says what has happened since the last.
  virtual void on_view(const membership::View& view) = 0;
  // Called with the error that has ended this task's own membership.
  virtual void on_end(const std::exception_ptr& error) = 0;
};

// Thread safety: any thread.
class ServerMembership : public rpc::Fence {
 public:
  // `context` must stay until stop(). Errors: InvalidArgument (settings).
  ServerMembership(ServerContext& context, const distribute::ServerOptions& options);

  // To be added to the dispatcher; nullptr where another task coordinates.
  std::shared_ptr<rpc::Service> service() const;
  // The task that holds the coordination service, as far as this one knows.
  TaskId coordinator() const;
  membership::MembershipAgent& agent() { return *agent_; }
  // The cluster's status. In the task that coordinates it has ages and the figures of all tasks; in
  // others, only each task's state and this task's own figures.
  membership::View status() const;

  // Begins to register. To be called once the server answers calls.
  void start();
  // Leaves in good order. The coordinating task then waits for the others to leave, two seconds at
  // most, for its end is the end of the cluster.
  void stop(const std::string& where);
  // The others stay, for another coordinator: stop() does not wait for them. Thread safety: any
  // thread.
  void others_stay() { others_stay_ = true; }

  void check(const rpc::Caller& caller) const override { agent_->check(caller); }
  // Whether this thread is in a handler of on_error, for which stop() would wait.
  bool in_callback() const;
  void on_error(std::function<void(std::exception_ptr)> handler);
  // Calls `listener` from the next view on, for as long as it lives.
  void listen(std::weak_ptr<MembershipListener> listener);

 private:
  std::vector<std::shared_ptr<MembershipListener>> listeners();
  void handle_error(std::exception_ptr error);
  // Applies a new view to calls and channels.
  void act_on(int64_t generation, const membership::ViewPtr& view);
  void learn_addresses(const membership::View& view);
  // Hands over the unhandled errors, one at a time, without the lock.
  void deliver(std::unique_lock<std::mutex>& lock);
  bool others_are_alive() const;
  membership::CoordinationOptions service_options(const distribute::ServerOptions& options);
  membership::ElasticAgentOptions elastic_options();
  // The status of the service, where this task holds it.
  std::optional<membership::View> held_status() const;

  ServerContext& context_;
  const TaskId leader_;
  const bool has_rendezvous_;
  const std::shared_ptr<rpc::Identity> identity_;

  mutable std::mutex mutex_;  // guards handler_ and what follows it; outlives the clock's timers
  std::condition_variable changed_;
  rpc::SystemClock clock_;
  std::shared_ptr<membership::CoordinationService> service_;
  std::shared_ptr<membership::ElasticService> elastic_;  // of an elastic cluster, instead
  std::atomic<uint64_t> services_held_{0};
  std::function<void(std::exception_ptr)> handler_;
  std::deque<std::exception_ptr> unhandled_;
  std::vector<std::weak_ptr<MembershipListener>> listeners_;
  std::atomic<bool> others_stay_{false};
  bool delivers_ = false;  // a thread does:
  std::thread::id deliverer_;

  std::unique_ptr<membership::MembershipAgent> agent_;  // calls back into this: the last member
};

}  // namespace cohort::internal
