// The contents of a distributed dataset: one pipeline for each input worker of this process.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/distribute/core/input_workers.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/device_copies.h"
#include "cohort/distribute/input/shared_order.h"

namespace cohort::distribute::internal_input {

// What is known about the order of the workers' elements in the undistributed dataset.
enum class ElementOrder {
  kOneWorker,    // its own
  kInterleaved,  // element k of pipeline i is number k * pipelines + i
  kUnknown,
};

// The part of the input that each replica takes in a step. With the last two, for replicas that
// tasks host, it does not matter which task hosts which.
enum class Feed {
  kElements,     // the elements of its worker's pipeline, in turn with the worker's other replicas
  kPieces,       // the piece of its number of each element of the one pipeline, a batch for all
  kOwnPipeline,  // the elements of the pipeline of its number
};

// Immutable except for the count of passes.
struct Source {
  std::shared_ptr<internal::StrategyCore> core;
  InputWorkers workers;
  // One a worker, or for kOwnPipeline one for each replica of all tasks. Elements are for one
  // replica each, but for kPieces.
  std::vector<data::Dataset> pipelines = {};
  Feed feed = Feed::kElements;
  // The dataset of which the pipelines are the parts, if there is one: a part may have no elements
  // from which a spec could be derived.
  std::optional<data::Dataset> whole = {};
  internal::StrategyCore::InputPipelines numbering = {};
  std::shared_ptr<DeviceCopies> copies = {};  // null where batches stay on the host
  ElementOrder order = ElementOrder::kUnknown;
  // The order of the batches of which all pipelines give pieces, if they do.
  std::optional<SharedOrder> shared = {};
  // The global batches before they are divided, where they can be divided otherwise.
  std::optional<data::Dataset> batches = {};
  // What divides them into parts of the workers' own.
  std::optional<data::AutoShardPolicy> policy = {};
  int64_t buffered = 0;  // pieces that are read ahead for each replica, besides one; -1: nothing is
  std::string division = {};  // between the workers, for people
  // Whether workers may end at different times: true if several read independently, false if they
  // are one dataset function's copies for the replicas of a process.
  bool workers_end_alone = false;
  // The steps of one pass on which all tasks that read for the same steps have agreed.
  std::optional<int64_t> agreed_cardinality = {};
  mutable std::atomic<uint64_t> passes{0};

  // The replicas of this task that a pipeline feeds.
  size_t num_replicas(size_t pipeline) const;
  // The number of this task's replicas.
  size_t num_replicas() const;
  // Reads ahead for the pipeline of this number in the task, and copies what it reads to its
  // replicas' devices meanwhile.
  internal::DataNodePtr read_ahead(internal::DataNodePtr pipeline, size_t number) const;
  // The spec of one component.
  StructureSpec component_spec() const;
  // Whether a last step for which some replicas have no data is filled up with dummies.
  bool fills_up_last_step() const;
  // The steps for which this task's pipelines have data, kInfiniteCardinality or
  // kUnknownCardinality. fills_up: whether also for one that lacks some batches.
  int64_t own_steps(bool fills_up) const;
};

}  // namespace cohort::distribute::internal_input
