// Objects of lower layers, which know nothing of checkpoints.
#include <ATen/ops/empty.h>

#include "cohort/data/dataset_iterator.h"
#include "cohort/data/iteration/dataset_reader.h"
#include "cohort/ops/random.h"
#include "cohort/train/trackable.h"

namespace cohort::train {
namespace {

// Three int64: position, stream and seed, where TensorFlow's generators keep their counter's two
// halves and their key.
class GeneratorState final : public Trackable {
 public:
  explicit GeneratorState(const random::RandomGenerator& generator) : generator_(generator) {}

  bool has_checkpoint_values() const override { return true; }

  std::vector<CheckpointValue> checkpoint_values() override {
    const random::RandomGenerator::State state = generator_.state();
    const Tensor value = at::empty({3}, int64);
    auto* numbers = value.data_ptr<int64_t>();
    numbers[0] = static_cast<int64_t>(state.position);
    numbers[1] = static_cast<int64_t>(state.stream);
    numbers[2] = static_cast<int64_t>(state.seed);
    return {{.attribute = kVariableValue, .full_name = "StateVar", .parts = {{Leaf(value)}}}};
  }

  void prepare_restore(RestoreSource& source) override {
    source.read(kVariableValue, {3}, int64, [generator = generator_](const Tensor& value) {
      const auto* numbers = value.data_ptr<int64_t>();
      generator.restore({.seed = static_cast<uint64_t>(numbers[2]),
                         .stream = static_cast<uint64_t>(numbers[1]),
                         .position = static_cast<uint64_t>(numbers[0])});
    });
  }

 private:
  random::RandomGenerator generator_;
};

class GeneratorObject final : public Trackable {
 public:
  explicit GeneratorObject(const random::RandomGenerator& generator) : state_(generator) {
    generator.state();  // here, not at the first save, one that was moved from is refused
  }
  std::vector<TrackableChild> checkpoint_children() override { return {{"_state_var", &state_}}; }

 private:
  GeneratorState state_;
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
