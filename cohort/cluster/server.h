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

#include <chrono>
#include <memory>
#include <string>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/coordination.h"
#include "cohort/cluster/security/credentials.h"
#include "cohort/core/export.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal {
class ServerCore;
}

namespace cohort::distribute {

struct ServerOptions {
  // Which task of the cluster spec this is; a resolver says it itself.
  std::string job_name = "";
  int task_index = 0;
  // Empty: those that the environment names (Credentials::from_environment).
  Credentials credentials = {};
  // The host or address to bind, where it is not the one that others connect to: "0.0.0.0" behind a
  // translated address. Empty: the cluster spec's.
  std::string bind_address = "";
  // A listening socket that this process inherited, which wins over the address; systemd's sockets
  // are found without it. -1: none.
  int listen_fd = -1;
  // A peer that is silent for keepalive_time is asked for a sign of life, and given up after
  // keepalive_timeout. The same in all tasks.
  std::chrono::milliseconds keepalive_time{10'000};
  std::chrono::milliseconds keepalive_timeout{10'000};
  // How long the tasks of the cluster may take to come, from the first on.
  std::chrono::milliseconds start_timeout = std::chrono::minutes(10);
  // A task says that it lives once in heartbeat_interval; one that was not heard of for
  // heartbeat_timeout is lost. (A process that ends is noticed at once, by its connections.) The
  // coordinating task's settings hold for all.
  std::chrono::milliseconds heartbeat_interval = std::chrono::seconds(5);
  std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(20);
  // How long a task whose connection to the coordinating one broke may take to come back before it is
  // lost. 0: 30 ms where all tasks are on one host by their addresses, else 300 ms, in which several
  // TLS connections can be tried over a network.
  std::chrono::milliseconds reconnect_grace{0};
  // How long a ps task keeps its variables after it has lost the coordinating task.
  std::chrono::milliseconds ps_lease = std::chrono::minutes(1);
  // SIGTERM and SIGINT end join().
  bool stop_on_signals = true;
  // A port where this task answers GET /metrics with its status as Prometheus reads it, over plain
  // HTTP, to whoever can reach it; 0: none. `metrics_host` is what it binds.
  int metrics_port = 0;
  std::string metrics_host = "127.0.0.1";
};

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
  // `options` may leave job and index out. A resolver that has only a rendezvous lets the task listen
  // at any free port and register it there.
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
  // As far as it is known: tasks with a rendezvous register their addresses one by one.
  train::ClusterSpec cluster_spec() const;
  // What the tasks agree on. Lives as long as the server.
  Coordination& coordination() const;

  // Waits until the coordinator of the cluster ends this task, a signal comes, or stop() is called,
  // and stops the server. Returns the exit status for main: 0; 130 after SIGINT and 143 after
  // SIGTERM. A further signal does not cut the end short, which takes seconds at most.
  // Errors: what made the server give up: Unavailable (the coordinating task is lost), Aborted
  // (another process took this task's place), FailedPrecondition (another program or cluster spec),
  // DeadlineExceeded (not all tasks have come). In a child of fork this and stop() are a FailedPrecondition.
  int join();
  // Ends calls under way with Cancelled, closes the port and lets join() return. Calls after the
  // first do nothing. From a handler of Coordination::on_error it only asks for the end, which join()
  // or the destructor brings.
  void stop(const std::string& reason = "");

  // For the library's own use.
  internal::ServerCore& core() const { return *core_; }

 private:
  std::shared_ptr<internal::ServerCore> core_;  // not destroyed in a child of fork
};

}  // namespace cohort::distribute
