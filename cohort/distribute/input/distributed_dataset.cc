#include "cohort/distribute/input/distributed_dataset.h"

#include "cohort/data/sharding/auto_shard.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/input_source.h"

namespace cohort::distribute {

using data::Dataset;
using internal::str;
using internal_input::BatchSequence;
using internal_input::Feed;
using internal_input::Source;

DistributedIterator DistributedDataset::iterator() const { return DistributedIterator(source_); }
BatchSequence DistributedDataset::begin() const { return BatchSequence(iterator()); }

DistributedIterator DistributedDataset::iterator_of_pass(uint64_t pass) const {
  source_->passes = pass;
  return iterator();
}

PerReplicaSpec DistributedDataset::element_spec() const {
  return {source_->component_spec(), source_->num_replicas()};
}

int64_t DistributedDataset::cardinality() const {
  if (source_->agreed_cardinality) return *source_->agreed_cardinality;
  return source_->own_steps(source_->fills_up_last_step());
}

const std::shared_ptr<internal::StrategyCore>& DistributedDataset::core() const {
  return source_->core;
}

std::string DistributedDataset::explain() const {
  const int total = source_->numbering.total;
  std::string text = str(total, total == 1 ? " input worker" : " input workers");
  if (!source_->division.empty()) text += ", " + source_->division;
  text += '\n';
  for (int i = 0; i < source_->workers.num_workers(); ++i) {
    text += str("worker ", source_->numbering.first + i, " on ",
                source_->workers.worker_devices()[i], ", for");
    const char* separator = " ";
    for (const std::string& device : source_->workers.compute_devices_for_worker(i)) {
      text += separator + device;
      separator = ", ";
    }
    const int first = source_->feed == Feed::kOwnPipeline ? source_->numbering.first : 0;
    text += '\n' + source_->pipelines[first + i].explain();
  }
  return text;
}

DistributedDataset DistributedDataset::auto_shard(int64_t num_shards, int64_t index) const {
  auto source =
      std::shared_ptr<Source>(new Source{.core = source_->core, .workers = source_->workers});
  source->numbering = source_->numbering;
  source->copies = source_->copies;
  source->whole = source_->whole;
  source->feed = source_->feed;
  source->workers_end_alone = source_->workers_end_alone;
  source->division = str("shard ", index, " of ", num_shards,
                         source_->division.empty() ? "" : " of ", source_->division);
  if (num_shards == 1) {
    source->order = source_->order;
    source->shared = source_->shared;
  }
  for (const Dataset& pipeline : source_->pipelines) {
    source->pipelines.push_back(
        data::auto_shard(pipeline, {.num_workers = num_shards,
                                    .index = index,
                                    .num_replicas = source_->core->num_replicas_in_sync()}));
  }
  // Other tasks may take other parts, about which this task learns nothing.
  if (source_->core->input_is_shared()) source->agreed_cardinality = data::kUnknownCardinality;
  return DistributedDataset(source);
}

}  // namespace cohort::distribute
