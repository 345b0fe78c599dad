#include "tour.h"

#include <csignal>
#include <ctime>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace tf = cohort;
using namespace std::chrono_literals;

namespace cluster_tour {
namespace {

using tf::distribute::ClusterTask;
using tf::distribute::ClusterView;
using tf::distribute::Coordination;
using tf::distribute::NamedFunction;
using tf::distribute::Server;

constexpr auto kPatience = 30s;

// One task speaks for all where all would say the same.
bool speaks(const Server& server, const ClusterView& view) {
  return server.task() == view.tasks.front().task;
}

// The next task in a ring of all.
tf::TaskId next_of(const Server& server, const ClusterView& view) {
  for (size_t i = 0; i < view.tasks.size(); ++i) {
    if (view.tasks[i].task == server.task()) return view.tasks[(i + 1) % view.tasks.size()].task;
  }
  return server.task();
}

// A line is one write, so that those of several tasks do not mix.
template <class... Parts>
void say(const Server& server, const Parts&... parts) {
  std::ostringstream line;
  line << server.task() << ": ";
  (line << ... << parts);
  line << '\n';
  std::cout << line.str() << std::flush;
}

ClusterView find_each_other(Server& server) {
  const ClusterView view = server.coordination().wait_for_start();
  if (speaks(server, view)) {
    say(server, "the cluster has ", view.tasks.size(), " tasks");
    for (const ClusterTask& task : view.tasks) {
      say(server, "  ", task.task, " ", tf::distribute::task_status_name(task.status));
    }
  }
  return view;
}

void exchange_values(Server& server, const ClusterView& view) {
  Coordination& cluster = server.coordination();
  cluster.set("greeting of " + to_string(server.task()), "hello from " + to_string(server.task()));
  const tf::TaskId next = next_of(server, view);
  say(server, "reads '", cluster.get("greeting of " + to_string(next), kPatience), "'");
  const int64_t order = cluster.add("number of greetings", 1);
  cluster.barrier("all have greeted");
  if (order == 1) say(server, cluster.get("number of greetings", kPatience), " greetings");
}

void call_each_other(Server& server, const ClusterView& view, const NamedFunction& statistics) {
  const tf::TaskId next = next_of(server, view);
  const tf::Structure result =
      statistics.call(server, next, tf::tuple(tf::range(server.task().index + 4)));
  say(server, next, " computes ", result);
  try {
    statistics.call(server, next, tf::tuple(1, 2));
  } catch (const tf::InvalidArgumentError& error) {
    if (speaks(server, view)) say(server, "a wrong call is an error here: ", error.task());
  }
  server.coordination().barrier("all have called");
}

// Milliseconds on the clock that all processes of a host share.
int64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000 + now.tv_nsec / 1'000'000;
}

void lose_a_worker(Server& server, const ClusterView& view) {
  Coordination& cluster = server.coordination();
  const tf::TaskId lost = view.tasks.back().task;
  if (server.task() == lost) {
    cluster.add("end", now_ms());
    std::raise(SIGKILL);
  }
  cluster.get("end", kPatience);
  const int64_t end = cluster.add("end", 0);
  try {
    cluster.barrier("a barrier that " + to_string(lost) + " never reaches");
  } catch (const tf::UnavailableError& error) {
    say(server, "after ", now_ms() - end, " ms: ", error.what());
  }
}

}  // namespace

void tour(const tf::distribute::cluster_resolver::ClusterResolver& resolver,
          const Options& options) {
  tf::logging::set_level(tf::logging::Level::kWarning);
  tf::distribute::NamedFunctions functions;
  const NamedFunction statistics = functions.add("statistics", [](const tf::Tensor& x) {
    return tf::dict({{"sum", x.sum()}, {"largest", x.max()}});
  });

  tf::distribute::ServerOptions server_options;
  server_options.metrics_port = options.metrics_port;
  Server server(resolver, server_options);
  functions.serve(server);
  const ClusterView view = find_each_other(server);
  exchange_values(server, view);
  call_each_other(server, view, statistics);
  if (options.lose_a_worker && view.tasks.size() > 1) lose_a_worker(server, view);
}

}  // namespace cluster_tour
