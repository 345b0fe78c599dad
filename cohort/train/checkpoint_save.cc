#include "cohort/train/checkpoint_save.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include "cohort/train/bundle_writer.h"
#include "cohort/train/checkpoint_directory.h"
#include "cohort/train/saved_objects.h"
#include "cohort/train/value_bytes.h"

namespace cohort::internal {
namespace {

using train::CheckpointValue;

Leaf on_host(const Leaf& value) {
  if (!value.is_tensor()) return value;
  const Tensor& tensor = value.tensor();
  bundle_type(tensor.scalar_type());  // refused now rather than by a background thread
  return Leaf(tensor.detach().to(at::kCPU).contiguous());
}

}  // namespace

Snapshot Snapshot::take(SavedObjects& objects) {
  const c10::NoGradGuard no_grad;
  Snapshot snapshot;
  for (size_t i = 0; i < objects.order().size(); ++i) {
    if (!objects.order()[i]->has_checkpoint_values()) continue;
    for (CheckpointValue& value : objects.order()[i]->checkpoint_values()) {
      std::string key = attribute_key(objects.path(i), value.attribute);
      for (CheckpointValue::Part& part : value.parts) {
        snapshot.parts_.push_back(
            {key, on_host(part.value), std::move(part.slice), value.full_shape});
      }
      objects.graph().nodes[i].attributes.push_back(
          {value.attribute, value.full_name, std::move(key)});
    }
  }
  objects.carry_over([&](const std::string& key, Leaf value) {
    snapshot.parts_.push_back({.key = key, .value = std::move(value), .carried = true});
  });
  snapshot.graph_ = format_object_graph(objects.graph());
  return snapshot;
}

void Snapshot::detach(Snapshot previous) {
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].value.is_tensor()) continue;  // strings never change
    const Tensor& value = parts_[i].value.tensor();
    Tensor copy;
    if (i < previous.parts_.size() && previous.parts_[i].value.is_tensor()) {
      const Tensor& old = previous.parts_[i].value.tensor();
      if (old.sizes() == value.sizes() && old.scalar_type() == value.scalar_type()) copy = old;
    }
    if (!copy.defined()) copy = at::empty_like(value);
    copy.copy_(value);
    parts_[i].value = Leaf(copy);
  }
}

uint64_t Snapshot::bytes() const {
  uint64_t bytes = graph_.size();
  for (const SavedPart& part : parts_) {
    if (part.value.is_tensor()) bytes += part.value.tensor().nbytes();
  }
  return bytes;
}

void Snapshot::write(FileSystem& files, const std::string& prefix) const {
  BundleWriter bundle(files, prefix, {.expected_bytes = bytes()});
  for (const SavedPart& part : parts_) {
    if (!part.value.is_tensor()) {
      const StringTensor& strings = part.value.strings();
      std::vector<std::string_view> views;
      for (int64_t i = 0; i < strings.numel(); ++i) views.push_back(strings[i]);
      bundle.add_strings(part.key, strings.sizes(), views);
      continue;
    }
    const Tensor& tensor = part.value.tensor();
    const BundleType type = bundle_type(tensor.scalar_type());
    if (part.slice) {
      bundle.add_slice(part.key, {type, part.full_shape}, *part.slice, bytes_of(tensor));
    } else {
      bundle.add(part.key, {type, tensor.sizes().vec()}, bytes_of(tensor));
    }
  }
  const std::string_view graph = graph_;
  bundle.add_strings(kObjectGraphKey, {}, {&graph, 1});
  bundle.finish();
}

std::string save_snapshot(const SaveTarget& target, const Snapshot& snapshot,
                          const std::function<std::string()>& then) {
  const auto turn = target.directory.begin_save(target.timeout);
  snapshot.write(target.files, target.prefix);
  if (!then) return "";
  target.directory.check_still_ours();
  return then();
}

}  // namespace cohort::internal
