// The part of a server that its services may use.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/fence.h"
#include "cohort/cluster/rpc/identity.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal {

// Thread safety: any thread. No call blocks.
class ServerContext {
 public:
  virtual ~ServerContext() = default;

  virtual const TaskId& task() const = 0;
  // The address at which this server listens.
  virtual const std::string& address() const = 0;
  // The address at which others reach this server. "0.0.0.0" is no such address.
  virtual const std::string& advertised_address() const = 0;
  // The identity that this task's calls carry. Membership sets its generation.
  virtual const std::shared_ptr<rpc::Identity>& identity() const = 0;

  // The cluster spec as far as it is known. Membership sets it as tasks register; channels to tasks
  // that have moved are made again.
  virtual train::ClusterSpec cluster_spec() const = 0;
  virtual void set_cluster_spec(const train::ClusterSpec& spec) = 0;
  // The place where tasks register, if nothing else is known of them.
  virtual const std::optional<distribute::cluster_resolver::Rendezvous>& rendezvous() const = 0;

  // The shared channel to `task`, which connects with its first call.
  // Errors: FailedPrecondition (its address is not known yet), Cancelled (the server has stopped).
  virtual std::shared_ptr<rpc::Channel> channel(const TaskId& task) = 0;
  virtual void set_fence(std::shared_ptr<const rpc::Fence> fence) = 0;

  // Whether the server with this incarnation is one of this process, which the calling thread has
  // made and nobody has asked to end: so it will not end while that thread waits.
  virtual bool is_left_to_this_thread(uint64_t incarnation) const = 0;

  // Lets join() stop the server and return; with an error, throw it.
  virtual void request_stop(const std::string& reason) = 0;
  virtual void request_stop(std::exception_ptr error) = 0;
};

}  // namespace cohort::internal
