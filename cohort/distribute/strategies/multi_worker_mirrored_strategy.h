// The devices of several machines, or of several processes, in step: each runs this program,
// variables are mirrored over all of them, gradients summed over all of them.
//
//   MultiWorkerMirroredStrategy strategy;      // which task of which cluster: by the launcher's variables
//   auto dist_dataset = strategy.experimental_distribute_dataset(dataset);
//   for (const auto& batch : dist_dataset) strategy.run(train_step, batch);
//
// docs/multi_worker.md: how to start such a job, and what each failure looks like.
#pragma once

#include <chrono>
#include <memory>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/cluster/server.h"
#include "cohort/collective/communication_options.h"
#include "cohort/core/export.h"
#include "cohort/core/program/task_id.h"
#include "cohort/distribute/strategies/strategy.h"

namespace cohort::distribute {

// Replicas that do not belong to workers: the program says how many there are, and workers host
// them. Then no bit of a result depends on the number of workers, and the others go on where one is
// lost: `run` and other collective calls take longer, num_workers() and is_chief() change in them.
// A worker that comes in the place of a lost one joins where the others save, in its
// CheckpointManager::restore_or_initialize(). Only on CPUs. Batches are divided as by
// AutoShardPolicy::DATA. docs/elastic.md says what a program must keep to.
struct ElasticOptions {
  // The number of replicas in sync, at least that of workers. Each worker hosts equally many, the
  // first ones one more where they do not divide evenly: on its first CPU, side by side, or in turn
  // where it has no core for a second one. 0: each worker's devices are its replicas.
  int replicas = 0;
  // Intra-op threads of each replica. Sums inside of operations depend on it, so it is the same on
  // all workers.
  int threads_per_replica = 1;
  // The strategy waits for others while there are fewer workers than these. 0: as many as the
  // launcher says (`cohort launch --workers 2:4`, COHORT_ELASTIC_WORKERS); 1 where it does not.
  int min_workers = 0;
  // How long after the first worker the strategy starts without the ones that have not come.
  std::chrono::milliseconds start_wait = std::chrono::seconds(30);
};

struct MultiWorkerMirroredStrategyOptions {
  // Says which tasks there are and which of them this is. None: default_cluster_resolver(), which
  // reads TF_CONFIG, or what torchrun, mpirun or srun have set; without any, the program is the
  // only worker.
  std::shared_ptr<const cluster_resolver::ClusterResolver> cluster_resolver = nullptr;
  experimental::CommunicationOptions communication_options = {};
  // Options of the task's server: credentials, heartbeats, how long the other tasks may take to
  // come (start_timeout). The first strategy of a process starts the server, later ones share it.
  // The resolver says which task it is.
  ServerOptions server_options = {};
  // See MirroredStrategyOptions.
  bool shared_storage = true;
  // Whether workers whose results may differ in bits are refused: another libtorch, processor, BLAS
  // or number of threads. Else a warning says so: the variables of such workers can drift apart.
  bool strict_bitwise = false;
  ElasticOptions elastic = {};
  // How long the end of the strategy waits for the workers that are still at work.
  std::chrono::milliseconds close_timeout = std::chrono::minutes(1);
};

// Workers are the tasks of the jobs chief and worker; an evaluator is alone. Each worker has a
// replica on each of its logical GPUs, or if it has none, on each of its logical CPUs (one, unless
// config::set_logical_device_configuration has made more); their numbers may differ. Replica ids
// are numbered worker by worker, the chief's first.
//
// The program may say how many replicas there are (`elastic`); `experimental_distribute_dataset` is
// then Unimplemented for AutoShardPolicy::FILE, HINT and OFF.
//
// Variables start from the values of the first worker, which also writes for all: checkpoints,
// summaries. What Strategy calls collective, all workers must call, in the same order: making the
// strategy, variables and datasets, run, reduce, gather, saving.
//
// Unless the strategy is elastic, a worker that is lost makes the calls of the others fail with an
// UnavailableError that names it, less than a second after its process has ended; one that stands
// still or cannot be reached, after ServerOptions::heartbeat_timeout. An error of a step comes to
// all workers by its class. The group is over after that: end the program (tf::run_program says 138
// to its launcher) or make the strategy again. The last handle's end waits for the other workers;
// one that ends by an exception does not.
class COHORT_API MultiWorkerMirroredStrategy : public Strategy {
 public:
  // COLLECTIVE over the workers: starts this task's server, waits until all tasks of the cluster
  // have come and connects the workers.
  // Errors: InvalidArgument (one line: a cluster that cannot run, no task type or id beside a
  // cluster, no worker, the options, fewer hosted replicas than workers), DeadlineExceeded (names
  // the tasks that have not come), Unavailable (a task was lost), FailedPrecondition (another
  // cluster spec, program, other hosted replicas or, if strict_bitwise, numeric environment; a port
  // that is taken, a process that is another task already), Aborted (the task is there already),
  // those of Server.
  explicit MultiWorkerMirroredStrategy(MultiWorkerMirroredStrategyOptions options);
  MultiWorkerMirroredStrategy();  // with the default options
  explicit MultiWorkerMirroredStrategy(
      std::shared_ptr<const cluster_resolver::ClusterResolver> cluster_resolver,
      experimental::CommunicationOptions communication_options = {});

  // This task; worker 0 if the program is alone.
  const TaskId& task() const;
  // This worker's number in the cluster: the chief's is 0, workers follow.
  int worker_id() const;
  // The workers that are there now, where the strategy is elastic.
  int num_workers() const;
  // Whether this task is the one that writes for all. An evaluator is, for itself.
  bool is_chief() const;
  // This task's server, for functions that other tasks call (Strategy::serve).
  // Errors of both: FailedPrecondition (there are no other workers).
  Server& server() const;
  // What the tasks of the cluster agree on: that of the server.
  Coordination& coordination() const;
};

namespace experimental {
// The original's deprecated name.
using MultiWorkerMirroredStrategy = distribute::MultiWorkerMirroredStrategy;
}  // namespace experimental

}  // namespace cohort::distribute
