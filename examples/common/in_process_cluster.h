// Guide 001's in-process cluster: servers of workers and ps tasks in this process, with sockets
// between them.
#pragma once

#include <cohort/cohort.h>
#include <cohort/testing/free_ports.h>

#include <memory>
#include <string>
#include <vector>

namespace examples {

// Creates and starts local servers. Its strategies end before it.
class InProcessCluster {
 public:
  InProcessCluster(int num_workers, int num_ps);
  // Worker 0 coordinates, and ends last.
  ~InProcessCluster();
  InProcessCluster(const InProcessCluster&) = delete;
  InProcessCluster& operator=(const InProcessCluster&) = delete;

  cohort::distribute::cluster_resolver::SimpleClusterResolver resolver() const {
    return cohort::distribute::cluster_resolver::SimpleClusterResolver(spec_);
  }

 private:
  void start(const std::string& job, int index);

  cohort::testing::FreePorts ports_;
  cohort::train::ClusterSpec spec_;
  std::vector<std::unique_ptr<cohort::distribute::Server>> servers_;
};

}  // namespace examples
