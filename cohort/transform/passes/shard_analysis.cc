#include "cohort/transform/passes/shard_analysis.h"

#include <ATen/ops/tensor.h>

#include <chrono>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/task.h"
#include "cohort/core/text.h"
#include "cohort/data/iteration/work_group.h"
#include "cohort/data/nodes/shuffle_seeds.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/distribute/variables/make_variable.h"
#include "cohort/parameter_server/closures/worker_routines.h"
#include "cohort/transform/passes/saved_part.h"

namespace cohort::internal {
namespace {

using data::AutoShardPolicy;
using data::Dataset;
using distribute::coordinator::ClusterCoordinator;
using distribute::coordinator::RemoteValue;

constexpr const char* kRoutine = "transform::analyze_dataset";

// What a closure is told.
struct ShardRequest {
  std::string graph;
  std::string function;  // that makes the dataset
  std::string results;   // of the phases before
  std::string directory;
  int64_t phase = 0;
  int64_t shard = 0;
  int64_t num_shards = 1;
  AutoShardPolicy policy = AutoShardPolicy::OFF;
  int64_t num_threads = 0;
  int64_t memory_limit = 0;
  std::vector<uint64_t> seeds = {};
};

ShardRequest decode_request(const Structure& arguments) {
  const StringTensor& texts = arguments[0].strings();
  const Tensor& numbers = arguments[1].tensor();
  const auto text = [&](int64_t i) { return std::string(texts[i]); };
  const auto number = [&](int64_t i) { return numbers[i].item<int64_t>(); };
  ShardRequest request{.graph = text(0),
                       .function = text(1),
                       .results = text(2),
                       .directory = text(3),
                       .phase = number(0),
                       .shard = number(1),
                       .num_shards = number(2),
                       .policy = static_cast<AutoShardPolicy>(number(3)),
                       .num_threads = number(4),
                       .memory_limit = number(5)};
  for (int64_t i = 6; i < numbers.numel(); ++i) {
    request.seeds.push_back(static_cast<uint64_t>(number(i)));
  }
  return request;
}

// The arguments of the closure: what decode_request takes.
std::pair<StringTensor, Tensor> encode_request(const ShardRequest& request) {
  std::vector<int64_t> numbers = {request.phase,       request.shard,
                                  request.num_shards,  static_cast<int64_t>(request.policy),
                                  request.num_threads, request.memory_limit};
  for (const uint64_t seed : request.seeds) numbers.push_back(static_cast<int64_t>(seed));
  return {StringTensor({request.graph, request.function, request.results, request.directory}),
          at::tensor(numbers)};
}

Dataset make_dataset(const WorkerSide& worker, const std::string& function, int64_t num_shards,
                     int64_t shard) {
  const ScopedDatasetFunction no_variables;
  return with_typed_errors(function.c_str(), [&] {
    return worker.functions().dataset(function)(
        {.num_input_pipelines = static_cast<int>(num_shards),
         .input_pipeline_id = static_cast<int>(shard),
         .num_replicas_in_sync = worker.num_local_replicas()});
  });
}

Dataset dataset_of(const WorkerSide& worker, const ShardRequest& request) {
  if (request.policy == AutoShardPolicy::OFF) {
    return make_dataset(worker, request.function, request.num_shards, request.shard);
  }
  const Dataset whole = make_dataset(worker, request.function, 1, 0);
  if (drawn_seeds(whole.node()).size() != request.seeds.size()) {
    throw FailedPreconditionError(str(quoted(request.function),
                                      " makes another dataset here than in the coordinator; every "
                                      "task must run the same program"));
  }
  const ShardedGraph shard = auto_shard_graph(
      with_agreed_seeds(whole.node(), request.seeds), request.policy,
      {.num_workers = request.num_shards, .index = request.shard, .parts_may_be_empty = true});
  return Dataset(shard.root, whole.options());
}

// What the closures run. Returns a part_message.
Structure analyze_shard(const WorkerSide& worker, const Structure& arguments) {
  const ShardRequest request = decode_request(arguments);
  FileSystem& files = posix_file_system();
  try {
    if (!files.exists(request.directory)) {
      throw NotFoundError(str("the coordinator's directory ", quoted(request.directory),
                              " is not there; all tasks must see the output directory under the "
                              "same path"));
    }
    const TransformGraph graph = read_graph(request.graph, "the function of the coordinator");
    AnalysesRun run(graph);
    put_results(run, graph, request.results, "the results of earlier phases");
    PhasePart part = read_part(
        graph, static_cast<int>(request.phase), run, dataset_of(worker, request),
        {.files = files,
         .directory = request.directory,
         .spill_directory = request.directory,
         .num_threads = request.num_threads > 0 ? request.num_threads : num_pipeline_threads(),
         .memory_limit = static_cast<size_t>(request.memory_limit)});
    return part_message(part, files, request.directory);
  } catch (...) {
    rethrow_with_context(str("shard ", request.shard, " of ", request.num_shards));
  }
}

const AddedRoutine kAdded(kRoutine, analyze_shard);

// The division of all of a dataset into so many shards.
ShardedGraph divided(const Dataset& whole, int64_t num_shards) {
  const AutoShardPolicy policy = whole.options().auto_shard_policy();
  ShardedGraph shard = auto_shard_graph(whole.node(), policy,
                                        {.num_workers = num_shards, .parts_may_be_empty = true});
  if (policy == AutoShardPolicy::HINT && shard.applied == AutoShardPolicy::OFF && num_shards > 1) {
    throw InvalidArgumentError(
        "analyze_dataset: AutoShardPolicy::HINT, but the dataset has no shard(SHARD_HINT, "
        "SHARD_HINT)");
  }
  return shard;
}

ShardedGraph divided_for(const Dataset& whole, int num_workers, int64_t& num_shards) {
  const AutoShardPolicy policy = whole.options().auto_shard_policy();
  if (num_shards == 0 && policy != AutoShardPolicy::DATA) {
    for (const int each : {4, 2, 1}) {
      num_shards = int64_t{each} * num_workers;
      ShardedGraph shard = divided(whole, num_shards);
      if (policy != AutoShardPolicy::AUTO || shard.applied == AutoShardPolicy::FILE) return shard;
    }
    num_shards = 0;
  }
  if (num_shards == 0) num_shards = int64_t{2} * num_workers;
  return divided(whole, num_shards);
}

}  // namespace

ShardedDataset shard_dataset(const WorkerSide& worker, const std::string& function, int num_workers,
                             int64_t num_shards) {
  if (num_shards < 0) {
    throw InvalidArgumentError(
        str("analyze_dataset: num_shards is ", num_shards, " and must be at least 0"));
  }
  const ScopedTask as_worker(Task::named(kWorker, 0));
  ShardedDataset dataset{.function = function, .whole = make_dataset(worker, function, 1, 0)};
  const ShardedGraph shard = divided_for(dataset.whole, num_workers, num_shards);
  for (const std::string& note : shard.notes) log_warning(note);
  dataset.num_shards = num_shards;
  dataset.policy = shard.applied;
  dataset.seeds = drawn_seeds(dataset.whole.node());
  return dataset;
}

PhasePart read_shards(const ClusterCoordinator& coordinator, const ShardedDataset& dataset,
                      const TransformGraph& graph, int phase, const AnalysesRun& run,
                      const PassOptions& options) {
  constexpr std::chrono::hours kLongerThanClosuresMayTake{24 * 365};
  ShardRequest request{.graph = graph_json(graph),
                       .function = dataset.function,
                       .results = results_text(run),
                       .directory = options.spill_directory,
                       .phase = phase,
                       .num_shards = dataset.num_shards,
                       .policy = dataset.policy,
                       .num_threads = options.num_threads,
                       .memory_limit = static_cast<int64_t>(options.memory_limit),
                       .seeds = dataset.seeds};
  PhasePart whole = empty_part(graph, phase, options);
  const distribute::WorkerFunction function(kRoutine, false);
  std::vector<RemoteValue> parts;
  try {
    for (; request.shard < request.num_shards; ++request.shard) {
      const auto [texts, numbers] = encode_request(request);
      parts.push_back(coordinator.schedule(function, texts, numbers));
    }
    for (size_t shard = 0; shard < parts.size(); ++shard) {
      const RemoteValue part = std::move(parts[shard]);
      add_part_message(whole, part.fetch(kLongerThanClosuresMayTake), options.files,
                       str("the part of shard ", shard));
    }
  } catch (...) {
    coordinator.join();  // throws the error of the first that failed, if that is why
    throw;
  }
  return whole;
}

}  // namespace cohort::internal
