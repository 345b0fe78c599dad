// Analyses of a dataset in shards, which a coordinator hands out to the workers of a cluster of
// parameter servers.
//
//   const ShardedDataset dataset = shard_dataset(*worker, "rows", num_workers, 0);
//   run_analyses(graph, options, [&](int phase, const AnalysesRun& run) {
//     return read_shards(coordinator, dataset, graph, phase, run, options);
//   });
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/parameter_server/closures/worker_side.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/transform/passes/analyses_run.h"
#include "cohort/transform/passes/phase_part.h"

namespace cohort::internal {

// How a dataset that workers make by a function is divided into shards.
struct ShardedDataset {
  std::string function;
  data::Dataset whole;
  int64_t num_shards = 1;
  // OFF: the function divides it itself, by its InputContext; or there is one shard.
  data::AutoShardPolicy policy = data::AutoShardPolicy::OFF;
  std::vector<uint64_t> seeds = {};  // of its shuffles, so that all workers divide one order
};

// Calls the function here, as on worker 0. num_shards: 0 for a number that fits the workers: four
// a worker where files are divided, for each reads its own; two where elements are, for each shard
// reads all the others, too.
// Errors: InvalidArgument (num_shards below 0; AutoShardPolicy::HINT without a hint), NotFound (no
// such function; AutoShardPolicy::FILE without files), what the function throws.
ShardedDataset shard_dataset(const WorkerSide& worker, const std::string& function, int num_workers,
                             int64_t num_shards);

// Has workers read all shards, each by a closure, whose result counts once however often it runs,
// and merges their parts in order. options.num_threads: those of each worker; 0: one a core.
// Errors: those of read_part in a worker, with its name and the shard's number; those of
// ClusterCoordinator::join. All closures have ended then.
PhasePart read_shards(const distribute::coordinator::ClusterCoordinator& coordinator,
                      const ShardedDataset& dataset, const TransformGraph& graph, int phase,
                      const AnalysesRun& run, const PassOptions& options);

}  // namespace cohort::internal
