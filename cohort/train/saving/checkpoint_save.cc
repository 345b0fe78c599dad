#include "cohort/train/saving/checkpoint_save.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/train/bundle/bundle_writer.h"
#include "cohort/train/bundle/value_bytes.h"
#include "cohort/train/objects/saved_objects.h"
#include "cohort/train/saving/checkpoint_directory.h"

namespace cohort::internal {
namespace {

using train::CheckpointValue;

Leaf on_host(const Leaf& value) {
  if (!value.is_tensor()) return value;
  const Tensor& tensor = value.tensor();
  bundle_type(tensor.scalar_type());  // refused now rather than by a background thread
  return Leaf(contiguous_elements(tensor.detach().to(at::kCPU)));
}

// A leaf of the value's form whose elements are one.
Leaf form_of(const train::RemotePart& part) {
  bundle_type(part.dtype());  // refused now, as above
  return Leaf(at::zeros({}, part.dtype()).expand(part.shape()));
}

// Parts that other processes have, by who finds them.
class RemoteParts {
 public:
  SavedPart::Remote add(const std::shared_ptr<const train::RemotePart>& part) {
    size_t source = 0;
    while (source < sources_.size() && sources_[source][0]->keeper() != part->keeper()) ++source;
    if (source == sources_.size()) sources_.emplace_back();
    sources_[source].push_back(part);
    return {source, sources_[source].size() - 1};
  }
  std::vector<std::shared_ptr<train::RemoteValues>> keep(std::chrono::milliseconds timeout) const {
    std::vector<std::shared_ptr<train::RemoteValues>> kept;
    for (const auto& parts : sources_) kept.push_back(parts[0]->keeper()->keep(parts, timeout));
    return kept;
  }

 private:
  std::vector<std::vector<std::shared_ptr<const train::RemotePart>>> sources_;
};

// The places of one source's parts, by number.
using WrittenElsewhere = std::vector<BundleWriter::Stored>;

// Missing: they are to be fetched.
std::optional<WrittenElsewhere> write_elsewhere(train::RemoteValues& values, FileSystem& files,
                                                BundleWriter& bundle) {
  if (&files != &posix_file_system()) return std::nullopt;  // which no other process has
  const BundleWriter::OthersTarget target = bundle.target_for_others();
  const auto written = values.write({target.directory, target.probe, target.file_prefix});
  if (!written) return std::nullopt;
  WrittenElsewhere places;
  for (const train::RemoteValues::File& file : *written) {
    const size_t number = bundle.adopt(file.name);
    for (const auto& stored : file.parts) {
      places.resize(std::max(places.size(), stored.part + 1));
      places[stored.part] = {number, stored.offset, stored.size, stored.crc};
    }
  }
  return places;
}

}  // namespace

Snapshot Snapshot::take(SavedObjects& objects, std::chrono::milliseconds timeout) {
  const c10::NoGradGuard no_grad;
  Snapshot snapshot;
  RemoteParts remote;
  for (size_t i = 0; i < objects.order().size(); ++i) {
    if (!objects.order()[i]->has_checkpoint_values()) continue;
    for (CheckpointValue& value : objects.order()[i]->checkpoint_values()) {
      std::string key = attribute_key(objects.path(i), value.attribute);
      for (CheckpointValue::Part& part : value.parts) {
        snapshot.parts_.push_back(
            {.key = key,
             .value = part.remote ? form_of(*part.remote) : on_host(part.value),
             .slice = std::move(part.slice),
             .full_shape = value.full_shape});
        if (part.remote) snapshot.parts_.back().remote = remote.add(part.remote);
      }
      objects.graph().nodes[i].attributes.push_back(
          {value.attribute, value.full_name, std::move(key)});
    }
  }
  objects.carry_over([&](const std::string& key, Leaf value) {
    snapshot.parts_.push_back({.key = key, .value = std::move(value), .carried = true});
  });
  snapshot.graph_ = format_object_graph(objects.graph());
  snapshot.remote_ = remote.keep(timeout);
  return snapshot;
}

void Snapshot::detach(Snapshot previous) {
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < parts_.size(); ++i) {
    // Strings never change, and what other processes have is kept there.
    if (!parts_[i].value.is_tensor() || parts_[i].remote) continue;
    const Tensor& value = parts_[i].value.tensor();
    Tensor copy;
    if (i < previous.parts_.size() && previous.parts_[i].value.is_tensor() &&
        !previous.parts_[i].remote) {
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
    if (part.value.is_tensor() && !part.remote) bytes += part.value.tensor().nbytes();
  }
  return bytes;
}

Tensor Snapshot::tensor_of(const SavedPart& part) const {
  if (!part.remote) return part.value.tensor();
  return remote_[part.remote->source]->fetch(part.remote->part).contiguous();
}

void Snapshot::write(FileSystem& files, const std::string& prefix) const {
  BundleWriter bundle(files, prefix, {.expected_bytes = bytes()});
  std::vector<std::optional<WrittenElsewhere>> elsewhere;
  for (const auto& source : remote_) elsewhere.push_back(write_elsewhere(*source, files, bundle));
  for (const SavedPart& part : parts_) {
    if (!part.value.is_tensor()) {
      const StringTensor& strings = part.value.strings();
      std::vector<std::string_view> views;
      for (int64_t i = 0; i < strings.numel(); ++i) views.push_back(strings[i]);
      bundle.add_strings(part.key, strings.sizes(), views);
      continue;
    }
    const Tensor& form = part.value.tensor();
    const BundleType type = bundle_type(form.scalar_type());
    const BundleTensor whole{type, part.slice ? part.full_shape : form.sizes().vec()};
    if (part.remote && elsewhere[part.remote->source]) {
      const BundleWriter::Stored& stored = elsewhere[part.remote->source]->at(part.remote->part);
      part.slice ? bundle.add_slice(part.key, whole, *part.slice, stored)
                 : bundle.add(part.key, whole, stored);
      continue;
    }
    const Tensor tensor = tensor_of(part);
    part.slice ? bundle.add_slice(part.key, whole, *part.slice, bytes_of(tensor))
               : bundle.add(part.key, whole, bytes_of(tensor));
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
