#include "cohort/distribute/distributed_dataset.h"

#include <algorithm>

#include "cohort/core/device.h"
#include "cohort/distribute/context_stack.h"
#include "cohort/distribute/strategy_core.h"
#include "cohort/train/trackable.h"

namespace cohort::distribute {

using internal::StrategyCore;
using internal::str;

namespace internal_input {

struct Source {
  std::shared_ptr<StrategyCore> core;
  data::Dataset dataset;
  std::vector<c10::Device> devices;  // of the replicas; empty where elements stay on the host
};

namespace {

// The rows that all leaves of a batch have.
int64_t batch_rows(const Structure& batch) {
  int64_t rows = -1;
  batch.for_each_with_path([&](const std::string& path, const Leaf& leaf) {
    const std::string where = path.empty() ? "the element" : "member " + path;
    if (leaf.dim() == 0) {
      throw InvalidArgumentError(str("cannot split ", where, " of ", batch,
                                     " over replicas: it has no batch dimension; call `batch` on "
                                     "the dataset first"));
    }
    const int64_t size = leaf.sizes()[0];
    if (rows >= 0 && size != rows) {
      throw InvalidArgumentError(str("cannot split a batch over replicas: ", where, " has ", size,
                                     " rows, the leaves before it ", rows));
    }
    rows = size;
  });
  return std::max<int64_t>(rows, 0);
}

Leaf on_device(Leaf leaf, const std::vector<c10::Device>& devices, size_t replica) {
  if (devices.empty() || leaf.is_strings() || devices[replica].is_cpu()) return leaf;
  return Leaf(leaf.tensor().to(devices[replica]));
}

PerReplica<Structure> split(const Structure& batch, const Source& source) {
  const auto replicas = static_cast<size_t>(source.core->num_local_replicas());
  const int64_t rows = batch_rows(batch);
  const int64_t piece = (rows + static_cast<int64_t>(replicas) - 1) / static_cast<int64_t>(replicas);
  PerReplica<Structure>::Values pieces;
  for (size_t i = 0; i < replicas; ++i) {
    const int64_t begin = std::min(rows, static_cast<int64_t>(i) * piece);
    const int64_t end = std::min(rows, begin + piece);
    pieces.push_back(batch.map([&](const Leaf& leaf) {
      const bool whole = begin == 0 && end == rows;
      return on_device(whole ? leaf : leaf.slice(begin, end), source.devices, i);
    }));
  }
  return PerReplica<Structure>(std::move(pieces));
}

void check_options(const InputOptions& options) {
  if (options.experimental_replication_mode == InputReplicationMode::PER_REPLICA) {
    throw UnimplementedError(
        "InputReplicationMode.PER_REPLICA is only supported in distribute_datasets_from_function");
  }
  if (options.experimental_place_dataset_on_device) {
    throw InvalidArgumentError(
        "experimental_place_dataset_on_device needs InputReplicationMode::PER_REPLICA");
  }
  if (options.experimental_per_replica_buffer_size < 0) {
    throw InvalidArgumentError(str("experimental_per_replica_buffer_size is ",
                                   options.experimental_per_replica_buffer_size,
                                   "; it must not be negative"));
  }
}

void check_batched(const StructureSpec& spec) {
  for (const TensorSpec& leaf : spec.flatten()) {
    if (!leaf.shape() || !leaf.shape()->empty()) continue;
    throw InvalidArgumentError(str("experimental_distribute_dataset got elements of ", spec,
                                   ", which have no batch dimension to split over replicas; call "
                                   "`batch` on the dataset first"));
  }
}

}  // namespace

BatchSequence::BatchSequence(DistributedIterator iterator)
    : owned_(std::make_shared<DistributedIterator>(std::move(iterator))),
      iterator_(owned_.get()),
      batch_(iterator_->next()) {}
BatchSequence::BatchSequence(DistributedIterator* iterator)
    : iterator_(iterator), batch_(iterator->next()) {}
BatchSequence& BatchSequence::operator++() {
  batch_ = iterator_->next();
  return *this;
}

}  // namespace internal_input

using internal_input::BatchSequence;
using internal_input::Source;

DistributedIterator::DistributedIterator(std::shared_ptr<const Source> source)
    : source_(std::move(source)), iterator_(source_->dataset.iterator()) {}

std::optional<PerReplica<Structure>> DistributedIterator::next() {
  internal::require_cross_replica("DistributedIterator::next",
                                  "next outside of the step and pass the batch to run");
  const std::optional<Structure> batch = iterator_.next();
  if (!batch) return std::nullopt;
  return internal_input::split(*batch, *source_);
}

PerReplica<Structure> DistributedIterator::get_next() {
  if (auto batch = next()) return *std::move(batch);
  throw OutOfRangeError("DistributedIterator::get_next: the dataset is at its end");
}

data::IteratorState DistributedIterator::state() const { return iterator_.state(); }
void DistributedIterator::restore(const data::IteratorState& state) { iterator_.restore(state); }
std::shared_ptr<train::Trackable> DistributedIterator::trackable() const {
  return train::TrackableHandle(iterator_).get();
}
BatchSequence DistributedIterator::begin() { return BatchSequence(this); }

namespace {
PerReplicaSpec spec_of(const Source& source) {
  const auto replicas = static_cast<size_t>(source.core->num_local_replicas());
  StructureSpec spec = source.dataset.element_spec();
  if (replicas > 1) {
    spec = spec.map([](const TensorSpec& leaf) { return leaf.with_batch_dim(kUnknownDim); });
  }
  return {std::move(spec), replicas};
}
}  // namespace

PerReplicaSpec DistributedIterator::element_spec() const { return spec_of(*source_); }

DistributedDataset::DistributedDataset(const Strategy& strategy, const data::Dataset& dataset,
                                       const InputOptions& options) {
  internal_input::check_options(options);
  internal_input::check_batched(dataset.element_spec());
  const std::shared_ptr<StrategyCore>& core = strategy.core();
  std::vector<c10::Device> devices;
  if (!core->is_default() && options.experimental_fetch_to_device.value_or(true)) {
    for (const std::string& name : core->worker_devices()) {
      devices.push_back(internal::torch_device(name));
    }
  }
  // As many global batches ahead as there are replicas.
  const bool ahead = !core->is_default() && options.experimental_per_replica_buffer_size > 0;
  source_ = std::make_shared<Source>(
      Source{core,
             ahead ? dataset.prefetch(core->num_local_replicas() *
                                      options.experimental_per_replica_buffer_size)
                   : dataset,
             std::move(devices)});
}

DistributedIterator DistributedDataset::iterator() const { return DistributedIterator(source_); }
PerReplicaSpec DistributedDataset::element_spec() const { return spec_of(*source_); }
int64_t DistributedDataset::cardinality() const { return source_->dataset.cardinality(); }
BatchSequence DistributedDataset::begin() const { return BatchSequence(iterator()); }

DistributedDataset Strategy::experimental_distribute_dataset(const data::Dataset& dataset) const {
  return experimental_distribute_dataset(dataset, InputOptions{});
}
DistributedDataset Strategy::experimental_distribute_dataset(const data::Dataset& dataset,
                                                             const InputOptions& options) const {
  return DistributedDataset(*this, dataset, options);
}

}  // namespace cohort::distribute
