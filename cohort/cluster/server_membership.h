// A server's place in the membership of its cluster: its agent, and in the task that coordinates the
// service itself.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "cohort/cluster/membership/agent.h"
#include "cohort/cluster/membership/coordination_service.h"
#include "cohort/cluster/rpc/fence.h"
#include "cohort/cluster/rpc/system_clock.h"
#include "cohort/cluster/server.h"
#include "cohort/cluster/server_context.h"

namespace cohort::internal {

// The task that runs the coordination service: the chief, else the first worker, else the first task.
TaskId coordinating_task(const train::ClusterSpec& spec);

// Thread safety: any thread.
class ServerMembership : public rpc::Fence {
 public:
  // `context` must stay until stop(). Errors: InvalidArgument (settings).
  ServerMembership(ServerContext& context, const distribute::ServerOptions& options);

  // To be added to the dispatcher; nullptr where another task coordinates.
  std::shared_ptr<rpc::Service> service() const { return service_; }
  membership::MembershipAgent& agent() { return *agent_; }
  // With ages and all tasks' figures where this task coordinates; else as far as it knows: who is in
  // which state, and its own figures.
  membership::View status() const;

  // Begins to register. Once the server answers calls.
  void start();
  // Leaves in good order. The coordinating task then waits for the others to leave, two seconds at
  // most, for its end is the end of the cluster.
  void stop(const std::string& where);

  void check(const rpc::Caller& caller) const override { agent_->check(caller); }
  void on_error(std::function<void(std::exception_ptr)> handler);

 private:
  void handle_error(std::exception_ptr error);
  void handle_change(const membership::ViewPtr& view);
  // Hands over what is unhandled, one at a time, without the lock.
  void deliver(std::unique_lock<std::mutex>& lock);
  bool others_are_alive() const;

  ServerContext& context_;
  const TaskId leader_;
  const bool has_rendezvous_;
  rpc::SystemClock clock_;
  std::shared_ptr<membership::CoordinationService> service_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::function<void(std::exception_ptr)> handler_;
  std::deque<std::exception_ptr> unhandled_;
  bool delivers_ = false;  // a thread does

  std::unique_ptr<membership::MembershipAgent> agent_;  // calls back into this: the last member
};

}  // namespace cohort::internal
