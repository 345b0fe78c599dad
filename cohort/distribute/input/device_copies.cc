#include "cohort/distribute/input/device_copies.h"

#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <utility>

#include "cohort/core/structure/host_buffer.h"

namespace cohort::distribute::internal_input {

using internal::copied_to;

namespace {

bool is_on_device(const Leaf& leaf) { return leaf.is_tensor() && !leaf.tensor().is_cpu(); }

// The first tensor of a device that has memory there; an undefined one if there is none.
Tensor first_on_device(const Structure& batch) {
  Tensor first;
  batch.for_each([&](const Leaf& leaf) {
    if (!first.defined() && is_on_device(leaf) && leaf.tensor().nbytes() > 0) first = leaf.tensor();
  });
  return first;
}

const void* memory_of(const Tensor& tensor) { return tensor.storage().data_ptr().get(); }

class CopiedIterator final : public internal::DataIterator {
 public:
  CopiedIterator(std::unique_ptr<DataIterator> input, std::shared_ptr<DeviceCopies> copies,
                 size_t first, size_t replicas)
      : input_(std::move(input)), copies_(std::move(copies)), first_(first), replicas_(replicas) {}

  bool next(Structure& out) override {
    const size_t replica = first_ + read_++ % replicas_;  // of an element that fails, too
    if (!input_->next(out)) return false;
    out = copies_->start(out, replica);
    return true;
  }
  std::shared_ptr<const std::string> last_origin() const override { return input_->last_origin(); }
  void rewind(uint64_t epoch) override {
    read_ = 0;
    input_->rewind(epoch);
  }
  internal::IteratorState save() override { return input_->save(); }
  // A state taken within a step puts elements on other replicas' devices, from which they go on.
  void restore(const internal::IteratorState& state) override {
    read_ = 0;
    input_->restore(state);
  }

 private:
  const std::unique_ptr<DataIterator> input_;
  const std::shared_ptr<DeviceCopies> copies_;
  const size_t first_;
  const size_t replicas_;
  size_t read_ = 0;
};

class CopiedNode final : public internal::UnaryNode {
 public:
  CopiedNode(internal::DataNodePtr input, std::shared_ptr<DeviceCopies> copies, size_t first,
             size_t replicas)
      : UnaryNode("copy_to_devices", std::move(input)),
        copies_(std::move(copies)),
        first_(first),
        replicas_(replicas) {}

  internal::DataNodePtr with_inputs(std::vector<internal::DataNodePtr> inputs) const override {
    return std::make_shared<CopiedNode>(std::move(inputs[0]), copies_, first_, replicas_);
  }
  int64_t cardinality() const override { return input().cardinality(); }
  std::unique_ptr<internal::DataIterator> make_iterator(
      const internal::IteratorContext& context) const override {
    auto elements = input().make_iterator(context);
    if (context.probing) return elements;
    return std::make_unique<CopiedIterator>(std::move(elements), copies_, first_, replicas_);
  }
  bool is_transparent() const override { return true; }
  bool passes_file_sharding() const override { return true; }
  bool passes_element_sharding() const override { return true; }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  const std::shared_ptr<DeviceCopies> copies_;
  const size_t first_;
  const size_t replicas_;
};

}  // namespace

Structure DeviceCopies::start(const Structure& batch, size_t replica) {
  const c10::Device device = devices_[replica];
  if (device.is_cpu()) return batch;
  const c10::Stream stream = internal::copy_stream(device);
  const c10::StreamGuard guard(stream);
  bool any = false;
  Structure there = batch.map([&](const Leaf& leaf) -> Leaf {
    if (leaf.is_strings() || !leaf.tensor().is_cpu()) return leaf;
    any = true;
    return Leaf(copied_to(leaf.tensor(), device));
  });
  if (any) note(there, stream);
  return there;
}

void DeviceCopies::note(const Structure& batch, c10::Stream stream) {
  const Tensor first = first_on_device(batch);
  if (!first.defined()) return;
  const void* const memory = memory_of(first);
  const std::lock_guard lock(mutex_);
  // A copy that never arrived is forgotten with its memory.
  auto place = std::find_if(copies_.begin(), copies_.end(),
                            [&](const Copy& copy) { return copy.memory == memory; });
  if (place == copies_.end()) {
    place = std::find_if(copies_.begin(), copies_.end(), [&](const Copy& copy) {
      return copy.memory == nullptr && copy.done.device_type() == stream.device_type();
    });
  }
  if (place == copies_.end()) {
    place = copies_.insert(place, Copy{.done = c10::Event(stream.device_type())});
  } else if (place->done.device_index() != stream.device_index()) {
    place->done = c10::Event(stream.device_type());  // an event is of one device
  }
  place->memory = memory;
  place->done.record(stream);
}

void DeviceCopies::order_after_copy(const Structure& batch, bool forget) {
  const Tensor first = first_on_device(batch);
  if (!first.defined()) return;
  const c10::Stream stream = internal::current_stream(first.device());
  {
    const std::lock_guard lock(mutex_);
    const auto copy = std::find_if(copies_.begin(), copies_.end(),
                                   [&](const Copy& one) { return one.memory == memory_of(first); });
    if (copy == copies_.end()) return;
    copy->done.block(stream);
    if (forget) copy->memory = nullptr;
  }
  batch.for_each([&](const Leaf& leaf) {
    if (is_on_device(leaf)) internal::keep_until_done(leaf.tensor(), stream);
  });
}

Structure DeviceCopies::arrived(const Structure& batch, size_t replica) {
  const c10::Device device = devices_[replica];
  if (device.is_cpu()) return batch;
  order_after_copy(batch, /*forget=*/true);
  return batch.map([&](const Leaf& leaf) -> Leaf {
    if (leaf.is_strings()) return leaf;
    const Tensor& tensor = leaf.tensor();
    return Leaf(tensor.is_cpu() ? copied_to(tensor, device) : tensor.to(device));
  });
}

Structure DeviceCopies::on_host(const Structure& batch) {
  order_after_copy(batch, /*forget=*/false);
  return batch.map([](const Leaf& leaf) -> Leaf {
    return leaf.is_strings() ? leaf : Leaf(leaf.tensor().cpu());
  });
}

internal::DataNodePtr make_copied(const internal::DataNodePtr& input,
                                  const std::shared_ptr<DeviceCopies>& copies, size_t first,
                                  size_t replicas) {
  return std::make_shared<CopiedNode>(input, copies, first, replicas);
}

}  // namespace cohort::distribute::internal_input
