// Guide 001's training with Model::fit and parameter servers. Every task runs all of this program:
// fit serves in workers and ps tasks until the coordinator's fit has ended.
//
//   parameter_server_fit --in-process                                   # all in this process
//   cohort launch --chief --workers 3 --ps 2 -- parameter_server_fit
#include <cohort/cohort.h>

#include <optional>

#include "common/in_process_cluster.h"
#include "options.h"

namespace parameter_server_fit {
namespace {

namespace tf = cohort;
namespace callbacks = tf::keras::callbacks;
using tf::data::Dataset;
using tf::distribute::InputContext;

Dataset dataset_fn(const InputContext& input_context) {
  const int64_t global_batch_size = 64;
  const int64_t batch_size = input_context.get_per_replica_batch_size(global_batch_size);

  const tf::Tensor x = tf::random::uniform({10, 10});
  // One number an example, for each of the model's ten outputs: where Keras's loss broadcasts
  // labels without a word, this one refuses shapes that differ.
  const tf::Tensor y = tf::random::uniform({10, 1}).expand({10, 10});

  return Dataset::from_tensor_slices(tf::tuple(x, y))
      .shuffle(10)
      .repeat()
      .shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
      .batch(batch_size)
      .prefetch(2);
}

tf::distribute::ParameterServerStrategy make_strategy(
    const tf::distribute::cluster_resolver::ClusterResolver& resolver) {
  // Without ps tasks the strategy says how to start a cluster.
  const auto cluster = resolver.cluster_spec();
  const auto num_ps = cluster.has_job("ps") ? static_cast<int64_t>(cluster.num_tasks("ps")) : 1;
  tf::distribute::ParameterServerStrategyOptions options;
  options.variable_partitioner = tf::distribute::partitioners::MinSizePartitioner(
      {.min_shard_bytes = 256 << 10, .max_shards = num_ps});
  return tf::distribute::ParameterServerStrategy(resolver, options);
}

void train(const tf::distribute::ParameterServerStrategy& strategy, const Options& options) {
  const tf::keras::DatasetCreator dc(dataset_fn);

  auto scope = strategy.scope();
  const tf::keras::Sequential model({tf::keras::layers::Dense(10)});
  model.compile(
      {.optimizer = tf::keras::optimizers::SGD(), .loss = "mse", .steps_per_execution = 10});
  scope.close();

  const std::string log_dir = options.working_dir + "/log";
  const std::string ckpt_filepath = options.working_dir + "/ckpt";
  const std::string backup_dir = options.working_dir + "/backup";
  model.fit(dc, {.epochs = options.epochs,
                 .verbose = 2,
                 .callbacks = {callbacks::TensorBoard({.log_dir = log_dir}),
                               callbacks::ModelCheckpoint({.filepath = ckpt_filepath}),
                               callbacks::BackupAndRestore(backup_dir)},
                 .steps_per_epoch = 20});
}

void run(const Options& options) {
  tf::random::set_seed(options.seed);
  if (options.in_process) {
    const examples::InProcessCluster cluster(options.workers, options.ps);
    train(make_strategy(cluster.resolver()), options);
  } else {
    train(make_strategy(tf::distribute::cluster_resolver::TFConfigClusterResolver()), options);
  }
}

}  // namespace
}  // namespace parameter_server_fit

int main(int argc, char** argv) {
  const parameter_server_fit::Options options = parameter_server_fit::parse_options(argc, argv);
  return cohort::run_program([&] { parameter_server_fit::run(options); });
}
