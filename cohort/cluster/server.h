// What a task of a cluster runs so that the others can reach it. One program may hold several, each
// a task of its own.
//
//   tf::distribute::cluster_resolver::TFConfigClusterResolver resolver;
//   if (resolver.task_type() == "worker") return tf::distribute::Server(resolver).join();
//
//   // A cluster within one process:
//   tf::train::ClusterSpec spec({{"worker", {"localhost:2222"}}, {"ps", {"localhost:2223"}}});
//   tf::distribute::Server worker(spec, {.job_name = "worker", .task_index = 0});
//   tf::distribute::Server ps(spec, {.job_name = "ps", .task_index = 0});
//   worker.target();   // "grpc://localhost:2222"
#pragma once

#include <memory>
#include <string>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/coordination.h"
#include "cohort/cluster/server_options.h"
#include "cohort/core/export.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal {
class ServerCore;
}

namespace cohort::distribute {

// Thread safety: any thread.
class COHORT_API Server {
 public:
  // Listens and answers from then on. SIGPIPE is ignored in the process from then on.
  // Errors: InvalidArgument (a cluster that cannot run, an unknown task, contradicting credentials;
  // one line that names the place in the configuration; no socket is opened), FailedPrecondition
  // (the port is taken, or can be reached by others although there are no credentials; unusable
  // credentials), NotFound (a credentials file is missing), Unavailable (the host's name is not
  // known).
  Server(const train::ClusterSpec& spec, const ServerOptions& options);
  // `options` may leave job and index out. A resolver that has only a rendezvous lets the task
  // listen at any free port and register it there.
  explicit Server(const cluster_resolver::ClusterResolver& resolver,
                  const ServerOptions& options = {});
  // Stops it.
  ~Server();
  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;

  // "grpc://" and the address.
  std::string target() const;
  // "host:port", with the port that is in use.
  const std::string& address() const;
  const TaskId& task() const;
  // The cluster spec as far as it is known: tasks with a rendezvous register their addresses one by
  // one.
  train::ClusterSpec cluster_spec() const;
  // The service by which the tasks of the cluster coordinate. It lives as long as the server.
  Coordination& coordination() const;

  // Waits until the coordinator of the cluster ends this task, a signal comes, or stop() is called,
  // and stops the server. Returns the exit status for main: 0; 130 after SIGINT and 143 after
  // SIGTERM. A further signal does not cut the end short, which takes seconds at most.
  // Errors: what made the server give up: Unavailable (the coordinating task is lost), Aborted
  // (another process took this task's place), FailedPrecondition (another program or cluster spec),
  // DeadlineExceeded (not all tasks have come). In a child of fork this and stop() are a
  // FailedPrecondition.
  int join();
  // Ends calls under way with Cancelled, closes the port and lets join() return. Calls after the
  // first do nothing. From a handler of Coordination::on_error it only asks for the end, which
  // join() or the destructor brings.
  void stop(const std::string& reason = "");

  // For the library's own use.
  internal::ServerCore& core() const { return *core_; }

 private:
  std::shared_ptr<internal::ServerCore> core_;  // not destroyed in a child of fork
};

}  // namespace cohort::distribute
