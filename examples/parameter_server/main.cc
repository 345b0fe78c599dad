// Guide 001's training with parameter servers, every task by one program.
//
//   parameter_server --in-process                                  # all in this process
//   cohort launch --chief --workers 3 --ps 2 --evaluator -- parameter_server --checkpoints DIR
#include <cohort/cohort.h>
#include <cohort/testing/free_ports.h>

#include <memory>
#include <string>
#include <vector>

#include "evaluator.h"
#include "options.h"
#include "training.h"

namespace parameter_server {
namespace {

namespace tf = cohort;
using tf::distribute::Server;

// Creates and starts local servers.
class InProcessCluster {
 public:
  InProcessCluster(int num_workers, int num_ps)
      : ports_(tf::testing::pick_free_ports(num_workers + num_ps)) {
    std::vector<std::string> workers, ps;
    for (int i = 0; i < ports_.size(); ++i) {
      (i < num_workers ? workers : ps).push_back("localhost:" + std::to_string(ports_[i]));
    }
    spec_ = tf::train::ClusterSpec({{"worker", workers}, {"ps", ps}});
    for (int i = 0; i < num_workers; ++i) start("worker", i);
    for (int i = 0; i < num_ps; ++i) start("ps", i);
  }

  // Worker 0 coordinates, and ends last.
  ~InProcessCluster() {
    while (!servers_.empty()) servers_.pop_back();
  }

  tf::distribute::cluster_resolver::SimpleClusterResolver resolver() const {
    return tf::distribute::cluster_resolver::SimpleClusterResolver(spec_);
  }

 private:
  void start(const std::string& job, int index) {
    servers_.push_back(std::make_unique<Server>(
        spec_, tf::distribute::ServerOptions{.job_name = job, .task_index = index}));
  }

  tf::testing::FreePorts ports_;
  tf::train::ClusterSpec spec_;
  std::vector<std::unique_ptr<Server>> servers_;
};

tf::distribute::ParameterServerStrategy make_strategy(
    const tf::distribute::cluster_resolver::ClusterResolver& resolver) {
  const int64_t num_ps = static_cast<int64_t>(resolver.cluster_spec().num_tasks("ps"));
  return tf::distribute::ParameterServerStrategy(
      resolver, {.variable_partitioner = tf::distribute::partitioners::MinSizePartitioner(
                     {.min_shard_bytes = 256 << 10, .max_shards = num_ps})});
}

int run(const Options& options) {
  tf::config::keep_freed_memory();
  tf::random::set_seed(options.seed);
  if (options.in_process) {
    const InProcessCluster cluster(options.workers, options.ps);
    Program(make_strategy(cluster.resolver()), options).train();
    return 0;
  }
  const tf::distribute::cluster_resolver::TFConfigClusterResolver resolver;
  if (resolver.task_type() == "evaluator") {
    evaluate_checkpoints(options);
    return 0;
  }
  Program program(make_strategy(resolver), options);
  if (resolver.task_type() == "worker" || resolver.task_type() == "ps") {
    return Server(resolver).join();
  }
  program.train();
  return 0;
}

}  // namespace
}  // namespace parameter_server

int main(int argc, char** argv) {
  const parameter_server::Options options = parameter_server::parse_options(argc, argv);
  return cohort::run_program([&] { return parameter_server::run(options); });
}
