// How a Server is run.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cohort/cluster/security/credentials.h"

namespace cohort::distribute {

// A cluster whose group goes on whatever task is lost, also the coordinating one, and starts
// without tasks that do not come. docs/membership.md says who decides.
struct ElasticClusterOptions {
  // The first group starts when all tasks have come, or when so many have and start_wait has passed
  // since the first came. At most the number of tasks; the same in all of them.
  int min_tasks = 1;
  std::chrono::milliseconds start_wait = std::chrono::seconds(30);
};

struct ServerOptions {
  // The task of the cluster spec that this is; a resolver says it itself.
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
  // How long a task whose connection to the coordinating one broke may take to come back before it
  // is lost. 0: 30 ms where all tasks are on one host by their addresses, else 300 ms, in which
  // several TLS connections can be tried over a network.
  std::chrono::milliseconds reconnect_grace{0};
  // Set: the cluster is elastic, in all of its tasks. heartbeat_interval and heartbeat_timeout are
  // 0.5 s and 2 s then, unless they are set to others than their defaults.
  std::optional<ElasticClusterOptions> elastic = {};
  // How long a ps task keeps its variables after it has lost the coordinating task.
  std::chrono::milliseconds ps_lease = std::chrono::minutes(1);
  // SIGTERM and SIGINT end join().
  bool stop_on_signals = true;
  // A port where this task answers GET /metrics with its status as Prometheus reads it, over plain
  // HTTP, to whoever can reach it; 0: none. `metrics_host` is what it binds.
  int metrics_port = 0;
  std::string metrics_host = "127.0.0.1";
};

}  // namespace cohort::distribute
