#include "cohort/transform/output/analyze.h"

#include <optional>
#include <utility>

#include "cohort/collective/call_timeout.h"
#include "cohort/core/durations.h"
#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/bounded_wait.h"
#include "cohort/data/iteration/work_group.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/agreed_dataset.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/tasks/task_errors.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/transform/graph/batch_columns.h"
#include "cohort/transform/graph/graph.h"
#include "cohort/transform/output/workplace.h"
#include "cohort/transform/passes/run_analyses.h"
#include "cohort/transform/passes/shard_analysis.h"
#include "cohort/transform/passes/task_analyses.h"

namespace cohort::transform {
namespace {

using internal::FileSystem;
using internal::quoted;
using internal::str;
using internal::TransformGraph;
using internal::Workplace;

constexpr const char* kCall = "analyze_dataset";

void check(const AnalyzeOptions& options) {
  constexpr int64_t kMostThreads = 1024;
  if (options.num_threads < 0 || options.num_threads > kMostThreads || options.memory_limit < 0) {
    throw InvalidArgumentError(str("analyze_dataset: num_threads is 0 to ", kMostThreads,
                                   " and memory_limit at least 0, but got ", options.num_threads,
                                   " and ", options.memory_limit));
  }
  internal::check_not_negative("analyze_dataset: timeout", options.timeout);
}

TransformGraph trace(const data::Dataset& dataset, const PreprocessingFunction& function) {
  if (dataset.cardinality() == data::INFINITE_CARDINALITY) {
    throw InvalidArgumentError("analyze_dataset: the dataset has no end; leave out repeat()");
  }
  return internal::trace(function, internal::column_types(dataset.element_spec()));
}

// `path`: the workplace's.
internal::PassOptions pass_options(const AnalyzeOptions& options, const std::string& path) {
  return {.files = internal::posix_file_system(),
          .directory = Workplace::assets(path),
          .spill_directory = Workplace::spill(path),
          .num_threads =
              options.num_threads > 0 ? options.num_threads : internal::num_pipeline_threads(),
          .memory_limit = static_cast<size_t>(options.memory_limit)};
}

// This task's part of a dataset, of which all tasks read one each.
data::Dataset share_of(const data::Dataset& whole, collective::SyncGroup& group) {
  const data::Dataset dataset = internal::in_agreed_order(group, whole);
  std::optional<internal::ShardedGraph> share;
  internal::in_all_tasks_or_none(group, kCall, [&] {
    share = internal::auto_shard_graph(dataset.node(), dataset.options().auto_shard_policy(),
                                       {.num_workers = group.view()->num_tasks(),
                                        .index = group.view()->task,
                                        .parts_may_be_empty = true});
    for (const std::string& note : share->notes) internal::log_warning(note);
  });
  const std::string division = str("divided by AutoShardPolicy::", share->applied);
  group.between().barrier({.name = kCall, .signature = division, .timeout = group.timeout()});
  return data::Dataset(share->root, dataset.options());
}

// The path of the first task's workplace, which it makes.
std::string agree_on_workplace(collective::SyncGroup& group, std::optional<Workplace>& workplace,
                               const std::string& output_directory, bool overwrite) {
  FileSystem& files = internal::posix_file_system();
  const std::string path =
      internal::texts_of_all_tasks_or_error(group, kCall, [&]() -> std::string {
        if (group.view()->task > 0) return "";
        workplace.emplace(files, output_directory, overwrite);
        return workplace->path();
      }).front();
  internal::in_all_tasks_or_none(group, kCall, [&] {
    if (files.exists(path)) return;
    throw NotFoundError(str("analyze_dataset: the first worker's directory ", quoted(path),
                            " is not there; all workers must see the output directory under the "
                            "same path"));
  });
  return path;
}

// Each task reads its share, and the first one writes the output. COLLECTIVE over the tasks.
TFTransformOutput analyze_together(collective::SyncGroup& group, const data::Dataset& dataset,
                                   const PreprocessingFunction& function,
                                   const std::string& output_directory,
                                   const AnalyzeOptions& options) {
  const collective::ScopedCallTimeout timeout(internal::bounded_wait(options.timeout));
  std::optional<TransformGraph> graph;
  internal::in_all_tasks_or_none(group, kCall, [&] { graph = trace(dataset, function); });
  internal::agree_on_dataset(group, dataset, kCall, str(", ", internal::graph_json(*graph)));
  const data::Dataset share = share_of(dataset, group);
  std::optional<Workplace> workplace;  // of the first task
  const std::string path =
      agree_on_workplace(group, workplace, output_directory, options.overwrite);
  const internal::AnalysesRun run =
      internal::run_analyses_of_tasks(*graph, share, pass_options(options, path), group);
  internal::in_all_tasks_or_none(group, kCall, [&] {
    if (workplace.has_value()) workplace->publish(*graph, run);
  });
  std::optional<TFTransformOutput> output;
  internal::in_all_tasks_or_none(group, kCall, [&] { output.emplace(output_directory); });
  return *output;
}

}  // namespace

TFTransformOutput analyze_dataset(const data::Dataset& dataset,
                                  const PreprocessingFunction& function,
                                  const std::string& output_directory,
                                  const AnalyzeOptions& options) {
  check(options);
  const auto strategy = distribute::get_strategy().core();
  if (strategy->group().spans_tasks()) {
    if (!distribute::in_cross_replica_context()) {
      throw FailedPreconditionError(
          "analyze_dataset: it is called in a step; all workers call it outside of steps");
    }
    return analyze_together(strategy->group(), dataset, function, output_directory, options);
  }
  const TransformGraph graph = trace(dataset, function);
  Workplace workplace(internal::posix_file_system(), output_directory, options.overwrite);
  workplace.publish(
      graph, internal::run_analyses(graph, dataset, pass_options(options, workplace.path())));
  return TFTransformOutput(output_directory);
}

TFTransformOutput analyze_dataset(const distribute::coordinator::ClusterCoordinator& coordinator,
                                  const distribute::WorkerFunction& dataset_fn,
                                  const PreprocessingFunction& function,
                                  const std::string& output_directory,
                                  const AnalyzeOptions& options) {
  check(options);
  const auto worker = coordinator.strategy().parameter_server_core()->worker();
  const internal::ShardedDataset dataset = internal::shard_dataset(
      *worker, dataset_fn.name(), worker->cluster().num_workers(), options.num_shards);
  const TransformGraph graph = trace(dataset.whole, function);
  Workplace workplace(internal::posix_file_system(), output_directory, options.overwrite);
  internal::PassOptions passes = pass_options(options, workplace.path());
  passes.num_threads = options.num_threads;
  workplace.publish(
      graph,
      internal::run_analyses(graph, passes, [&](int phase, const internal::AnalysesRun& run) {
        return internal::read_shards(coordinator, dataset, graph, phase, run, passes);
      }));
  return TFTransformOutput(output_directory);
}

AnalyzedDataset analyze_and_transform_dataset(const data::Dataset& dataset,
                                              const PreprocessingFunction& function,
                                              const std::string& output_directory,
                                              const AnalyzeOptions& options) {
  TFTransformOutput output = analyze_dataset(dataset, function, output_directory, options);
  return {.dataset = dataset.map(output.transform_features_layer(),
                                 {.num_parallel_calls = data::AUTOTUNE}),
          .output = output};
}

}  // namespace cohort::transform
