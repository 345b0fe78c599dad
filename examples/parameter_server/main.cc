// Guide 001's training with parameter servers, every task by one program.
//
//   parameter_server --in-process                                  # all in this process
//   cohort launch --chief --workers 3 --ps 2 --evaluator -- parameter_server --checkpoints DIR
#include <cohort/cohort.h>

#include "common/in_process_cluster.h"
#include "evaluator.h"
#include "options.h"
#include "training.h"

namespace parameter_server {
namespace {

namespace tf = cohort;
using tf::distribute::Server;

tf::distribute::ParameterServerStrategy make_strategy(
    const tf::distribute::cluster_resolver::ClusterResolver& resolver) {
  // Without ps tasks the strategy says how to start a cluster.
  const auto cluster = resolver.cluster_spec();
  const auto num_ps = cluster.has_job("ps") ? static_cast<int64_t>(cluster.num_tasks("ps")) : 1;
  return tf::distribute::ParameterServerStrategy(
      resolver, {.variable_partitioner = tf::distribute::partitioners::MinSizePartitioner(
                     {.min_shard_bytes = 256 << 10, .max_shards = num_ps})});
}

int run(const Options& options) {
  tf::config::keep_freed_memory();
  tf::random::set_seed(options.seed);
  if (options.in_process) {
    const examples::InProcessCluster cluster(options.workers, options.ps);
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
