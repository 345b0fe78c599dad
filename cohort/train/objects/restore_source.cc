#include "cohort/train/objects/restore_source.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/value_bytes.h"

namespace cohort::internal {

const ObjectGraph::Attribute* NodeSource::find(std::string_view attribute) const {
  for (const auto& candidate : node_->attributes) {
    if (candidate.name == attribute) return &candidate;
  }
  return nullptr;
}

const BundleEntry& NodeSource::entry_of(const ObjectGraph::Attribute& attribute) const {
  if (bundle_.contains(attribute.checkpoint_key)) return bundle_.entry(attribute.checkpoint_key);
  throw DataLossError(str("checkpoint '", bundle_.prefix(), "': its object graph names a tensor ",
                          quoted(attribute.checkpoint_key), ", which is not in its index"));
}

const std::string& NodeSource::key_of(std::string_view attribute) {
  if (const auto* found = find(attribute)) {
    keys_.insert(found->checkpoint_key);
    return found->checkpoint_key;
  }
  const std::string other = node_->attributes.empty()
                                ? "no values"
                                : "a value " + quoted(node_->attributes[0].checkpoint_key);
  throw InvalidArgumentError(
      str("an object that keeps ", quoted(attribute), " is in the checkpoint with ", other));
}

std::optional<std::vector<int64_t>> NodeSource::shape(std::string_view attribute) const {
  const auto* found = find(attribute);
  if (found == nullptr) return std::nullopt;
  return entry_of(*found).shape;
}

bool NodeSource::has(std::string_view attribute, at::IntArrayRef shape, DType dtype) const {
  const auto* found = find(attribute);
  if (found == nullptr) return false;
  const BundleEntry& entry = entry_of(*found);
  return at::IntArrayRef(entry.shape) == shape && dtype_of(entry.type) == dtype;
}

const std::string& NodeSource::checked_key(std::string_view attribute, at::IntArrayRef shape,
                                           DType dtype) {
  const std::string& key = key_of(attribute);
  if (has(attribute, shape, dtype)) return key;
  const BundleEntry& entry = entry_of(*find(attribute));
  throw InvalidArgumentError(str(readable_key(key), ": the checkpoint has ", type_name(entry.type),
                                 " ", shape_str(entry.shape), ", the program ", dtype_name(dtype),
                                 " ", shape_str(shape)));
}

void NodeSource::read(std::string_view attribute, at::IntArrayRef shape, DType dtype, Take take) {
  read_whole(checked_key(attribute, shape, dtype), shape, dtype, std::move(take));
}

void NodeSource::read_whole(const std::string& key, at::IntArrayRef shape, DType dtype, Take take) {
  const auto [wanted, first] = wanted_.try_emplace(key);
  if (first) wanted->second = empty_for_reading(shape, dtype);
  on_commit([value = wanted->second, take = std::move(take)] { take(value); });
}

void NodeSource::read_slice(std::string_view attribute, at::IntArrayRef full_shape,
                            const train::TensorSlice& slice, DType dtype, Take take) {
  read_slice_of(checked_key(attribute, full_shape, dtype), slice, dtype, std::move(take));
}

void NodeSource::read_slice_of(const std::string& key, const train::TensorSlice& slice, DType dtype,
                               Take take) {
  Tensor value = at::empty(slice.length, dtype);
  bundle_.read_slice(key, slice, value.data_ptr());
  on_commit([value = std::move(value), take = std::move(take)] { take(value); });
}

void NodeSource::read_remote(std::string_view attribute, at::IntArrayRef full_shape,
                             const std::optional<train::TensorSlice>& slice,
                             const std::shared_ptr<const train::RemotePart>& part, Take take) {
  remote_.push_back(
      {{part, checked_key(attribute, full_shape, part->dtype()), slice}, std::move(take)});
}

StringTensor NodeSource::read_strings(std::string_view attribute) {
  const std::string& key = key_of(attribute);
  const BundleEntry& entry = entry_of(*find(attribute));
  if (entry.type != BundleType::kString) {
    throw InvalidArgumentError(str(readable_key(key), ": the checkpoint has ",
                                   type_name(entry.type), ", the program strings"));
  }
  return StringTensor(bundle_.read_strings(key), entry.shape);
}

void NodeSource::fill() {
  read_elsewhere();
  std::map<std::string, void*, std::less<>> places;
  for (const auto& [key, value] : wanted_) places.emplace(key, value.data_ptr());
  if (late_) {
    for (const auto& [key, place] : places) bundle_.read(key, place);
  } else {
    bundle_.read_all(places, verified_elsewhere_);
  }
  for (const auto& [key, value] : wanted_) check_booleans(bundle_, key, value);
}

void NodeSource::read_elsewhere() {
  std::vector<Remote> left = std::exchange(remote_, {});
  while (!left.empty()) {
    train::RemoteKeeper& keeper = *left[0].read.part->keeper();
    const auto others = std::stable_partition(left.begin(), left.end(), [&](const Remote& one) {
      return one.read.part->keeper().get() == &keeper;
    });
    std::vector<train::RemoteRead> wanted;
    for (auto one = left.begin(); one != others; ++one) wanted.push_back(one->read);
    if (!read_by(keeper, wanted) && !send_by(keeper, wanted)) {
      for (auto one = left.begin(); one != others; ++one) read_here(std::move(*one));
    }
    left.erase(left.begin(), others);
  }
}

bool NodeSource::read_by(train::RemoteKeeper& keeper,
                         const std::vector<train::RemoteRead>& wanted) {
  if (&files_ != &posix_file_system()) return false;  // which no other process has
  std::error_code error;
  const auto prefix = std::filesystem::absolute(bundle_.prefix(), error);
  if (error) return false;
  const std::shared_ptr<train::RemoteReads> reads =
      keeper.read(prefix.string(), bundle_.index_crc(), wanted);
  if (!reads) return false;
  for (const train::RemoteRead& one : wanted) verified_elsewhere_.insert(one.key);
  on_commit([reads] { reads->commit(); });
  return true;
}

// One value at a time is in this process; fill() verifies them with the rest.
bool NodeSource::send_by(train::RemoteKeeper& keeper,
                         const std::vector<train::RemoteRead>& wanted) {
  const std::shared_ptr<train::RemoteReads> sent =
      keeper.send(wanted, [this](const train::RemoteRead& one) { return value_of(one); });
  if (!sent) return false;
  on_commit([sent] { sent->commit(); });
  return true;
}

Tensor NodeSource::value_of(const train::RemoteRead& wanted) const {
  Tensor value = empty_for_reading(wanted.part->shape(), wanted.part->dtype());
  if (wanted.slice) {
    bundle_.read_slice(wanted.key, *wanted.slice, value.data_ptr());
  } else {
    bundle_.read(wanted.key, value.data_ptr());
  }
  check_booleans(bundle_, wanted.key, value);
  return value;
}

void NodeSource::read_here(Remote remote) {
  const train::RemotePart& part = *remote.read.part;
  if (remote.read.slice) {
    read_slice_of(remote.read.key, *remote.read.slice, part.dtype(), std::move(remote.take));
  } else {
    read_whole(remote.read.key, part.shape(), part.dtype(), std::move(remote.take));
  }
}

void check_booleans(const BundleReader& bundle, std::string_view key, const Tensor& value) {
  if (value.scalar_type() != DType::Bool) return;
  for (const unsigned char byte : bytes_of(value)) {  // whose sign is not the machine's choice
    if (byte == 0 || byte == 1) continue;
    throw DataLossError(str("checkpoint '", bundle.prefix(), "': ", readable_key(std::string(key)),
                            " holds a truth value of ", static_cast<int>(byte)));
  }
}

void NodeSource::commit() {
  wanted_.clear();
  for (auto& action : actions_) {
    action();
    action = nullptr;  // frees what it holds: values are as large as the model
  }
}

}  // namespace cohort::internal
