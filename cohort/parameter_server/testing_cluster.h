// For tests: the servers of a cluster in this process, as guide 001 makes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/cluster/launch/free_ports.h"
#include "cohort/cluster/resolvers/simple_cluster_resolver.h"
#include "cohort/cluster/server.h"

namespace cohort::distribute {

class TestingCluster {
 public:
  TestingCluster(int workers, int ps) : ports_(internal::pick_free_ports(workers + ps)) {
    std::vector<std::string> addresses;
    for (int i = 0; i < ports_.size(); ++i) {
      addresses.push_back("127.0.0.1:" + std::to_string(ports_[i]));
    }
    const auto split = addresses.begin() + workers;
    spec_ = train::ClusterSpec({{"worker", std::vector<std::string>(addresses.begin(), split)},
                                {"ps", std::vector<std::string>(split, addresses.end())}});
    for (int i = 0; i < workers; ++i) start("worker", i);
    for (int i = 0; i < ps; ++i) start("ps", i);
  }

  // The coordinating task, worker 0, ends last.
  ~TestingCluster() {
    while (!servers_.empty()) servers_.pop_back();
  }

  const train::ClusterSpec& spec() const { return spec_; }
  cluster_resolver::SimpleClusterResolver resolver() const {
    return cluster_resolver::SimpleClusterResolver(spec_);
  }
  void start(const std::string& job, int index) {
    servers_.push_back(std::make_unique<Server>(
        spec_, ServerOptions{.job_name = job, .task_index = index, .stop_on_signals = false}));
  }
  // Ends the server of this task.
  void stop(const std::string& job, int index) {
    std::erase_if(servers_, [&](const auto& server) {
      return server->task() == TaskId{job, index};
    });
  }

 private:
  internal::FreePorts ports_;
  train::ClusterSpec spec_;
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace cohort::distribute
