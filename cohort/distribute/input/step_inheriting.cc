// Going on where readers were that divided a dataset otherwise: all workers read together what
// those have left, and give their replicas pieces of it.
#include <utility>

#include "cohort/core/observe/logging.h"
#include "cohort/data/graph/graph.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/data/sharding/in_turn.h"
#include "cohort/data/sharding/split_batches.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/step_reader.h"

namespace cohort::distribute::internal_input {

using data::AutoShardPolicy;
using data::DatasetIterator;
using data::IteratorState;
using internal::DataNodePtr;
using internal::str;

namespace {

// The place of a pipeline of whose batches replicas take `pieces` pieces.
internal::PipelineRest rest_of(const IteratorState& own, int64_t pieces) {
  const IteratorState::Child& root = own.shared_child("root");
  const bool within = pieces > 1 && root->has("split_piece");
  const int64_t used = (within ? root->get_int("split_piece", 1, pieces) : 0) +
                       (own.has("given") ? own.get_int("given", 0, internal::kMostElements) : 0);
  return {.root = within ? root->shared_child("input") : root,
          .skip = used / pieces,
          .piece = used % pieces,
          .pieces = pieces};
}

}  // namespace

// The pipelines of those who were there before, one batch of each in turn.
DataNodePtr StepReader::rest_node(const Rest& rest) const {
  const DataNodePtr& batches = source_->batches->node();
  if (rest.pipelines == 0) return batches;
  std::vector<DataNodePtr> pipelines;
  for (int64_t i = 0; i < rest.pipelines; ++i) {
    pipelines.push_back(internal::auto_shard_graph(batches, rest.policy,
                                                   {.num_workers = rest.pipelines, .index = i})
                            .root);
  }
  return internal::make_in_turn(std::move(pipelines));
}

// This task's pipeline of this number, if all share the batches.
DatasetIterator StepReader::divided(const DataNodePtr& batches, size_t pipeline) const {
  const Source& source = *source_;
  const int replicas = source.core->num_replicas_in_sync();
  DataNodePtr node = batches;
  if (source.feed == Feed::kPieces) {
    if (source.buffered >= 0) node = internal::make_read_ahead(node, 1 + source.buffered);
  } else {
    if (replicas > 1) node = internal::make_split(node, replicas);
    const int64_t number = source.numbering.first + static_cast<int64_t>(pipeline);
    node = internal::auto_shard_graph(node, AutoShardPolicy::DATA,
                                      {.num_workers = source.numbering.total, .index = number})
               .root;
    node = source.read_ahead(node, pipeline);
  }
  return {node,
          internal::IteratorContext{.epoch = epoch_,
                                    .passes = {source_, &source.passes},
                                    .deterministic = source.batches->options().is_deterministic()}};
}

StepReader::Place StepReader::rest_at(const Rest& rest, const IteratorState& whole) const {
  const DataNodePtr batches = rest_node(rest);
  Place place = own_place();
  place.rest = rest;
  place.others.clear();
  for (size_t i = 0; i < iterators_.size(); ++i) place.others.push_back(divided(batches, i));
  const bool cut = source_->feed != Feed::kPieces;
  place.shared = SharedOrder{
      .pieces = cut ? source_->core->num_replicas_in_sync() : 1,
      .pipelines = cut ? source_->numbering.total : 1,
      .graph = std::make_shared<const std::string>(internal::describe_state_graph(*batches))};
  place_whole(place, whole);
  if (source_->numbering.first == 0 && cut && source_->numbering.total > 1) {
    internal::log_info(
        "input goes on from a position of another division of the dataset: until "
        "its end every worker reads all that is left");
  }
  return place;
}

StepReader::Place StepReader::rest_of_all(const Rest& rest,
                                          const std::vector<IteratorState>& pipelines,
                                          int64_t pieces) const {
  const DataNodePtr batches = rest_node(rest);
  std::vector<internal::PipelineRest> rests;
  for (size_t i = 0; i < pipelines.size(); ++i) {
    const std::string here = internal::describe_state_graph(*batches->inputs()[i]);
    if (const auto difference = internal::first_graph_difference(
            without_agreed(pipelines[i].get_bytes("graph")), without_agreed(here))) {
      throw InvalidArgumentError("this state is of another pipeline: " + *difference);
    }
    rests.push_back(rest_of(pipelines[i], pieces));
  }
  IteratorState whole;
  whole.set_bytes("graph", internal::describe_state_graph(*batches));
  if (pipelines[0].has("pass")) whole.set_int("pass", pipelines[0].get_int("pass"));
  whole.set_child("root", internal::state_in_turn(rests));
  return rest_at(rest, whole);
}

}  // namespace cohort::distribute::internal_input
