#include "common/in_process_cluster.h"

namespace examples {

namespace tf = cohort;

InProcessCluster::InProcessCluster(int num_workers, int num_ps)
    : ports_(tf::testing::pick_free_ports(num_workers + num_ps)) {
  std::vector<std::string> workers, ps;
  for (int i = 0; i < ports_.size(); ++i) {
    (i < num_workers ? workers : ps).push_back("localhost:" + std::to_string(ports_[i]));
  }
  spec_ = tf::train::ClusterSpec({{"worker", workers}, {"ps", ps}});
  for (int i = 0; i < num_workers; ++i) start("worker", i);
  for (int i = 0; i < num_ps; ++i) start("ps", i);
}

InProcessCluster::~InProcessCluster() {
  while (!servers_.empty()) servers_.pop_back();
}

void InProcessCluster::start(const std::string& job, int index) {
  tf::distribute::ServerOptions options;
  options.job_name = job;
  options.task_index = index;
  options.stop_on_signals = false;
  servers_.push_back(std::make_unique<tf::distribute::Server>(spec_, options));
}

}  // namespace examples
