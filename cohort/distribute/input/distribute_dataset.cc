#include "cohort/distribute/input/distribute_dataset.h"

#include <algorithm>
#include <exception>
#include <optional>

#include "cohort/collective/task_collectives.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/observe/monitoring.h"
#include "cohort/core/observe/time_histogram.h"
#include "cohort/core/structure/device.h"
#include "cohort/data/graph/graph.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/graph/rewrite.h"
#include "cohort/data/iteration/input_deadline.h"
#include "cohort/data/nodes/prefetch.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/data/sharding/split_batches.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/agreed_dataset.h"
#include "cohort/distribute/input/input_source.h"
#include "cohort/distribute/tasks/task_errors.h"

namespace cohort::internal {

using data::AutoShardPolicy;
using data::Dataset;
using distribute::DatasetFunction;
using distribute::DistributedDataset;
using distribute::DistributedDatasetOptions;
using distribute::InputContext;
using distribute::InputOptions;
using distribute::InputReplicationMode;
using distribute::InputWorkers;
using distribute::internal_input::DeviceCopies;
using distribute::internal_input::ElementOrder;
using distribute::internal_input::Feed;
using distribute::internal_input::make_copied;
using distribute::internal_input::SharedOrder;
using distribute::internal_input::Source;

namespace {

using GraphText = std::shared_ptr<const std::string>;

constexpr const char* kByFunction = "as the dataset function divides it";

void check_options(const InputOptions& options) {
  if (options.experimental_place_dataset_on_device &&
      options.experimental_replication_mode != InputReplicationMode::PER_REPLICA) {
    throw InvalidArgumentError(
        "experimental_place_dataset_on_device needs InputReplicationMode::PER_REPLICA");
  }
  if (options.experimental_per_replica_buffer_size < 0) {
    throw InvalidArgumentError(str("experimental_per_replica_buffer_size is ",
                                   options.experimental_per_replica_buffer_size,
                                   "; it must not be negative"));
  }
}

void check_workers(const InputWorkers& workers, StrategyCore& core, int num_pipelines) {
  const int replicas = core.num_replicas_in_sync();
  if (replicas % num_pipelines != 0) {
    throw InvalidArgumentError(str("every input worker must have the same number of replicas, but ",
                                   replicas, " replicas in sync cannot be divided by ",
                                   num_pipelines, " workers"));
  }
  const auto each = static_cast<size_t>(core.num_local_replicas() / workers.num_workers());
  for (int i = 0; i < workers.num_workers(); ++i) {
    const size_t fed = workers.compute_devices_for_worker(i).size();
    if (fed == each &&
        workers.num_workers() * each == static_cast<size_t>(core.num_local_replicas())) {
      continue;
    }
    throw InvalidArgumentError(str("every input worker must feed the same number of replicas, ",
                                   core.num_local_replicas(), " in all, but worker ", i, " of ",
                                   workers.num_workers(), " feeds ", fed));
  }
}

// Checks that the input workers of all tasks feed equally many replicas. The pieces of a global
// batch, one for each replica, go to the input workers in turn: a worker that feeds more replicas
// than others would be through first, and most steps would be short of rows. Every task throws the
// same.
void check_shares_of_tasks(const Source& source) {
  collective::SyncGroup& group = source.core->group();
  if (!group.spans_tasks()) return;
  const std::vector<int>& workers = source.numbering.each;
  const auto view = group.view();
  const std::vector<int>& replicas = view->replicas_of;
  const auto share_of = [&](size_t task) {
    return str(group.between().task_name(static_cast<int>(task)), " has ", replicas[task], " for ",
               workers[task], workers[task] == 1 ? " input worker" : " input workers");
  };
  for (size_t task = 1; task < workers.size(); ++task) {
    if (replicas[task] * workers[0] == replicas[0] * workers[task]) continue;
    throw InvalidArgumentError(str("every input worker must have the same number of replicas, but ",
                                   share_of(0), ", ", share_of(task),
                                   "; give every task as many devices, or batches of its own by "
                                   "distribute_datasets_from_function"));
  }
}

// The way to the devices of the replicas; null if batches stay on the host.
std::shared_ptr<DeviceCopies> copies_to_devices(StrategyCore& core, const InputWorkers& workers,
                                                const InputOptions& options) {
  if (core.is_default() || !options.experimental_fetch_to_device.value_or(true)) return nullptr;
  std::vector<c10::Device> devices;
  const std::vector<std::string> fed = workers.compute_devices();
  for (size_t i = 0; i < fed.size(); ++i) {
    const std::string& replica = core.worker_devices()[i];
    if (canonicalize(fed[i], replica) != replica) {
      throw InvalidArgumentError(str("the input workers feed device ", fed[i], " where replica ", i,
                                     " of the strategy is on ", replica));
    }
    devices.push_back(torch_device(replica));
  }
  const bool all_on_host =
      std::all_of(devices.begin(), devices.end(), [](c10::Device one) { return one.is_cpu(); });
  return all_on_host ? nullptr : std::make_shared<DeviceCopies>(std::move(devices));
}

// Lets each pipeline read `buffered` batches ahead for each replica, besides one.
void read_ahead(Source& source, int64_t buffered) {
  source.buffered = buffered;
  for (size_t i = 0; i < source.pipelines.size(); ++i) {
    Dataset& pipeline = source.pipelines[i];
    pipeline = Dataset(source.read_ahead(pipeline.node(), i), pipeline.options());
  }
}

// Whether each replica has its own number of an input pipeline, whichever task it is on.
bool replicas_are_apart(const StrategyCore& core) {
  return core.group().view()->division != nullptr;
}

// The input workers of hosted replicas: one that reads for all of the task's, or one for each.
void check_readers(const InputWorkers& workers, const StrategyCore& core, int num_pipelines) {
  const auto replicas = static_cast<size_t>(core.num_local_replicas());
  const bool reads_for_all =
      workers.num_workers() == 1 && workers.compute_devices_for_worker(0).size() == replicas;
  if (reads_for_all || num_pipelines == core.num_replicas_in_sync()) return;
  throw InvalidArgumentError(str("elastic replicas need one input worker that feeds all ", replicas,
                                 " of this task, or one for each; here are ", workers.num_workers(),
                                 " for ", workers.compute_devices().size(), " replicas"));
}

std::shared_ptr<Source> make_source(const InputWorkers& given,
                                    const std::shared_ptr<StrategyCore>& owner,
                                    const InputOptions& options) {
  check_options(options);
  StrategyCore& core = *owner;
  const auto numbering = core.input_pipelines(given.num_workers());
  // Other replicas may be here since, if the group has formed again.
  const InputWorkers workers = core.transaction() == nullptr ? given : core.input_workers(options);
  replicas_are_apart(core) ? check_readers(workers, core, numbering.total)
                           : check_workers(workers, core, numbering.total);
  auto source = std::shared_ptr<Source>(new Source{.core = owner, .workers = workers});
  source->buffered = -1;
  source->numbering = numbering;
  source->copies = copies_to_devices(core, workers, options);
  if (numbering.total == 1) source->order = ElementOrder::kOneWorker;
  source->workers_end_alone = numbering.total > 1 && (options.experimental_replication_mode ==
                                                          InputReplicationMode::PER_WORKER ||
                                                      replicas_are_apart(core));
  return source;
}

// The reader of a task that hosts replicas: every task reads all batches in one order, as if it
// were alone, and gives its replicas their pieces.
void add_reader_of_pieces(Source& source, const Dataset& batches, GraphText graph,
                          int64_t buffered) {
  StrategyCore& core = *source.core;
  source.whole =
      Dataset(make_split(batches.node(), core.num_replicas_in_sync()), batches.options());
  source.numbering.total = 1;
  source.numbering.first = 0;
  source.numbering.each.assign(source.numbering.each.size(), 1);
  source.order = ElementOrder::kOneWorker;
  source.workers_end_alone = false;
  source.division = "pieces by the numbers of replicas";
  source.feed = Feed::kPieces;
  source.buffered = buffered > 0 ? buffered : -1;
  source.shared = SharedOrder{.graph = std::move(graph)};
  DataNodePtr node = batches.node();
  if (buffered > 0) node = make_read_ahead(node, 1 + buffered);
  source.pipelines.emplace_back(node, batches.options());
}

// Errors: Unimplemented (a policy by which an element's replica depends on who reads).
void check_policy_of_pieces(const Dataset& dataset, bool split_batches) {
  if (!split_batches) {
    throw UnimplementedError(
        "batches that are not split cannot be read under elastic replicas; use a dataset function, "
        "which makes a pipeline for each replica");
  }
  const AutoShardPolicy policy = dataset.options().auto_shard_policy();
  if (policy == AutoShardPolicy::AUTO || policy == AutoShardPolicy::DATA) return;
  throw UnimplementedError(
      str("AutoShardPolicy::", policy,
          " under elastic replicas: who reads which elements would depend on the workers; use "
          "AutoShardPolicy::DATA, or a dataset function, which makes a pipeline for each replica"));
}

// Makes sure that all tasks read elements in one order, if elements are divided: it decides who
// gets which. COLLECTIVE over the tasks.
void agree_on_order(const Source& source, const Dataset& whole) {
  collective::SyncGroup& group = source.core->group();
  const bool divides_elements =
      source.order == ElementOrder::kInterleaved || replicas_are_apart(*source.core);
  if (!group.spans_tasks() || !divides_elements) return;
  std::string shuffles;
  for_each_node(whole.node(), [&](const DataNodePtr& node) {
    if (node->sharding_role() != ShardingRole::kShuffle) return;
    shuffles += str(shuffles.empty() ? "" : ", ", describe_node(*node));
  });
  collective::agree_between_tasks(group, "the shuffles ahead of a division by elements", shuffles);
}

// The part of each worker. What there is to say is logged once, not for each.
void add_shards(Source& source, const Dataset& dataset) {
  const AutoShardPolicy policy = dataset.options().auto_shard_policy();
  source.whole = dataset;
  for (int i = 0; i < source.workers.num_workers(); ++i) {
    const ShardedGraph sharded =
        auto_shard_graph(dataset.node(), policy,
                         {.num_workers = source.numbering.total,
                          .index = source.numbering.first + i,
                          .num_replicas = source.core->num_replicas_in_sync()});
    source.pipelines.emplace_back(sharded.root, dataset.options());
    if (i > 0) continue;
    for (const std::string& note : sharded.notes) log_warning(note);
    if (source.numbering.total == 1) continue;
    source.division = str("AutoShardPolicy::", policy);
    if (sharded.applied != policy) source.division += str(", by ", sharded.applied);
    if (sharded.applied == AutoShardPolicy::DATA) source.order = ElementOrder::kInterleaved;
    if (sharded.applied != AutoShardPolicy::DATA) source.policy = sharded.applied;
  }
}

// Whether looking at an element may consume it, so that it cannot be read again.
bool looking_consumes(const Dataset& dataset) {
  bool consumes = false;
  for_each_node(dataset.node(), [&](const DataNodePtr& node) {
    consumes = consumes || (node->inputs().empty() && node->guesses_spec());
  });
  return consumes;
}

// Tasks that read for the same steps go on until the last of them ends. COLLECTIVE over the tasks.
void agree_on_cardinality(Source& source) {
  if (!source.core->input_is_shared()) return;
  const std::vector<int64_t> steps = collective::all_tasks_values(
      source.core->group(), source.own_steps(/*fills_up=*/true), "the steps of a dataset");
  const auto any_has = [&](int64_t cardinality) {
    return std::find(steps.begin(), steps.end(), cardinality) != steps.end();
  };
  source.agreed_cardinality = any_has(data::kInfiniteCardinality)  ? data::kInfiniteCardinality
                              : any_has(data::kUnknownCardinality) ? data::kUnknownCardinality
                                                                   : std::ranges::max(steps);
}

// Checks the elements early, if that is possible. The code that reads them checks them, too.
void check_elements(const Dataset& dataset) {
  if (looking_consumes(dataset)) return;
  std::optional<StructureSpec> spec;
  try {
    spec = dataset.element_spec();
  } catch (const InputDeadlineExceeded&) {
    throw;
  } catch (const std::exception&) {  // of elements that somebody may leave out: ignore_errors
  }
  if (spec) check_batched(*spec);
  check_not_examples(*dataset.node());
}

void count_call(const StrategyCore& core, const char* function) {
  increase_counter("distribution_strategy_input_api_counter", {std::string(core.name()), function});
}

TimedScope timed_creation() {
  static TimeHistogram& times = time_histogram("dataset_creation");
  return TimedScope(times);
}

}  // namespace

DistributedDataset distribute_to_workers(const std::shared_ptr<StrategyCore>& core,
                                         const Dataset& dataset, const InputWorkers& workers,
                                         const DistributedDatasetOptions& options) {
  if (options.input.experimental_replication_mode == InputReplicationMode::PER_REPLICA) {
    throw UnimplementedError(
        "InputReplicationMode.PER_REPLICA is only supported in distribute_datasets_from_function");
  }
  const std::shared_ptr<Source> source = make_source(workers, core, options.input);
  const bool in_pieces = replicas_are_apart(*core);
  if (!replicas_are_apart(*core)) check_shares_of_tasks(*source);
  const int replicas = source->core->num_replicas_in_sync();
  const bool split = options.split_batches && replicas > 1;
  const int64_t buffered = options.input.experimental_per_replica_buffer_size;
  agree_on_dataset(source->core->group(), dataset, "experimental_distribute_dataset");
  const Dataset whole = in_agreed_order(source->core->group(), dataset);
  // Agreed seeds are not in it: they are in states, as others are.
  const auto graph = std::make_shared<const std::string>(describe_state_graph(*dataset.node()));
  in_all_tasks_or_none(source->core->group(), "experimental_distribute_dataset", [&] {
    if (in_pieces) check_policy_of_pieces(whole, options.split_batches);
    if (!split && !in_pieces) return add_shards(*source, whole);
    check_elements(whole);
    if (in_pieces) return add_reader_of_pieces(*source, whole, graph, buffered);
    add_shards(*source, Dataset(make_split(whole.node(), replicas), whole.options()));
  });
  const bool shares = source->order == ElementOrder::kOneWorker ||
                      (split && source->order == ElementOrder::kInterleaved);
  if (options.split_batches || in_pieces) source->batches = whole;
  if (!in_pieces && shares) {
    source->shared = SharedOrder{
        .pieces = split ? replicas : 1, .pipelines = source->numbering.total, .graph = graph};
  }
  agree_on_order(*source, whole);
  if (buffered > 0 && !in_pieces && !source->core->is_default()) read_ahead(*source, buffered);
  agree_on_cardinality(*source);
  return DistributedDataset(source);
}

namespace {

// A pipeline for each replica of all tasks: a task that comes to host other replicas has theirs,
// without a call of the program's function in the middle of something else.
DistributedDataset datasets_of_replicas(const std::shared_ptr<StrategyCore>& core,
                                        const DatasetFunction& fn, InputOptions options) {
  options.experimental_replication_mode = InputReplicationMode::PER_REPLICA;
  const std::shared_ptr<Source> source = make_source(core->input_workers(options), core, options);
  const int replicas = core->num_replicas_in_sync();
  in_all_tasks_or_none(core->group(), "the dataset function", [&] {
    for (int i = 0; i < replicas; ++i) {
      source->pipelines.push_back(fn({.num_input_pipelines = replicas,
                                      .input_pipeline_id = i,
                                      .num_replicas_in_sync = replicas}));
    }
  });
  source->feed = Feed::kOwnPipeline;
  source->division = kByFunction;
  agree_on_cardinality(*source);
  return DistributedDataset(source);
}

}  // namespace

DistributedDataset datasets_from_function(const std::shared_ptr<StrategyCore>& core,
                                          const DatasetFunction& fn, const InputWorkers& workers,
                                          const std::vector<InputContext>& contexts,
                                          const InputOptions& options) {
  const std::shared_ptr<Source> source = make_source(workers, core, options);
  if (contexts.size() != static_cast<size_t>(workers.num_workers())) {
    throw InvalidArgumentError(str("there must be one input context a worker, but there are ",
                                   contexts.size(), " contexts and ", workers.num_workers(),
                                   " workers"));
  }
  in_all_tasks_or_none(source->core->group(), "the dataset function", [&] {
    for (const InputContext& context : contexts) source->pipelines.push_back(fn(context));
  });
  if (source->numbering.total == 1) {
    source->shared = SharedOrder{.graph = std::make_shared<const std::string>(
                                     describe_state_graph(*source->pipelines[0].node()))};
  }
  source->division = kByFunction;
  // Their own prefetch ends in the host's memory.
  if (source->copies && options.experimental_per_replica_buffer_size > 0) read_ahead(*source, 0);
  agree_on_cardinality(*source);
  return DistributedDataset(source);
}

DistributedDataset datasets_from_function(const std::shared_ptr<StrategyCore>& core,
                                          const DatasetFunction& fn, const InputOptions& options) {
  if (replicas_are_apart(*core)) return datasets_of_replicas(core, fn, options);
  const InputWorkers workers = core->input_workers(options);
  const StrategyCore::InputPipelines pipelines = core->input_pipelines(workers.num_workers());
  std::vector<InputContext> contexts;
  for (int i = 0; i < workers.num_workers(); ++i) {
    contexts.push_back({.num_input_pipelines = pipelines.total,
                        .input_pipeline_id = pipelines.first + i,
                        .num_replicas_in_sync = core->num_replicas_in_sync()});
  }
  return datasets_from_function(core, fn, workers, contexts, options);
}

DistributedDataset distribute_dataset(const std::shared_ptr<StrategyCore>& core,
                                      const Dataset& dataset, const InputOptions& options) {
  count_call(*core, "distribute_dataset");
  const auto timed = timed_creation();
  return distribute_to_workers(core, dataset, core->input_workers(options), {.input = options});
}

DistributedDataset distribute_from_function(const std::shared_ptr<StrategyCore>& core,
                                            const DatasetFunction& fn,
                                            const InputOptions& options) {
  count_call(*core, "distribute_datasets_from_function");
  const auto timed = timed_creation();
  return datasets_from_function(core, fn, options);
}

}  // namespace cohort::internal
