// Objects of lower layers, which know nothing of checkpoints.
#include <ATen/ops/empty.h>

#include <map>
#include <memory>
#include <optional>

#include "cohort/core/text.h"
#include "cohort/data/dataset_iterator.h"
#include "cohort/data/graph/dataset_reader.h"
#include "cohort/ops/generator_streams.h"
#include "cohort/ops/random.h"
#include "cohort/train/objects/save_group.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::train {
namespace {

// One of a generator's streams. Three int64: position, stream and seed, where TensorFlow's
// generators keep their counter's two halves and their key.
class StreamState final : public Trackable {
 public:
  // Missing `replica`: the generator's own stream.
  StreamState(const random::RandomGenerator& generator, std::optional<int> replica)
      : generator_(generator), replica_(replica) {}

  bool has_checkpoint_values() const override { return true; }

  std::vector<CheckpointValue> checkpoint_values() override {
    const auto state = internal::streams_of(generator_).state_of(replica_);
    const Tensor value = at::empty({3}, int64);
    auto* numbers = value.data_ptr<int64_t>();
    numbers[0] = static_cast<int64_t>(state.position);
    numbers[1] = static_cast<int64_t>(state.stream);
    numbers[2] = static_cast<int64_t>(state.seed);
    return {{.attribute = kVariableValue, .full_name = "StateVar", .parts = {{Leaf(value)}}}};
  }

  void prepare_restore(RestoreSource& source) override {
    internal::streams_of(generator_).state_of(replica_);  // makes it: Take must not allocate
    source.read(kVariableValue, {3}, int64,
                [generator = generator_, replica = replica_](const Tensor& value) {
                  const auto* numbers = value.data_ptr<int64_t>();
                  internal::streams_of(generator).restore_of(
                      replica, {.seed = static_cast<uint64_t>(numbers[2]),
                                .stream = static_cast<uint64_t>(numbers[1]),
                                .position = static_cast<uint64_t>(numbers[0])});
                });
  }

 private:
  random::RandomGenerator generator_;
  std::optional<int> replica_;
};

// "_state_var", as TensorFlow's, and "replica_r" for each replica of this task that has a stream of
// its own. The order counts: what is restored of the generator's own stream begins the others anew.
class GeneratorObject final : public Trackable {
 public:
  // Here, not at the first save, a generator that was moved from is refused.
  explicit GeneratorObject(const random::RandomGenerator& generator)
      : generator_(generator),
        group_(internal::streams_of(generator).group()),
        own_(generator, {}) {}

  std::vector<TrackableChild> checkpoint_children() override {
    std::vector<TrackableChild> children = {{"_state_var", &own_}};
    for (const int replica : internal::streams_of(generator_).local_replicas()) {
      auto& state = replicas_[replica];
      if (state == nullptr) state = std::make_unique<StreamState>(generator_, replica);
      children.push_back(
          {internal::str("replica_", replica), state.get(), /*may_be_missing=*/true});
    }
    return children;
  }

  std::shared_ptr<SaveGroup> save_group() const override {
    return group_ == nullptr ? nullptr : group_->save_group();
  }

 private:
  random::RandomGenerator generator_;
  std::shared_ptr<internal::ReplicaGroup> group_;
  StreamState own_;
  std::map<int, std::unique_ptr<StreamState>> replicas_;
};

class IteratorObject final : public Trackable {
 public:
  explicit IteratorObject(std::shared_ptr<internal::DatasetReader> reader)
      : reader_(std::move(reader)) {}

  bool has_checkpoint_values() const override { return true; }

  std::vector<CheckpointValue> checkpoint_values() override {
    return {{.attribute = kIteratorState,
             .parts = {{Leaf(StringTensor::scalar(reader_->state().serialize()))}}}};
  }

  void prepare_restore(RestoreSource& source) override {
    const StringTensor bytes = source.read_strings(kIteratorState);
    source.on_commit([this, place = reader_->place_at(data::IteratorState::parse(bytes.item()))] {
      reader_->go_to(place);
    });
  }

 private:
  std::shared_ptr<internal::DatasetReader> reader_;
};

}  // namespace

TrackableHandle::TrackableHandle(const random::RandomGenerator& generator)
    : object_(std::make_shared<GeneratorObject>(generator)) {}

TrackableHandle::TrackableHandle(const data::DatasetIterator& iterator)
    : object_(std::make_shared<IteratorObject>(iterator.reader())) {}

}  // namespace cohort::train
