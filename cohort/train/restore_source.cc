#include "cohort/train/restore_source.h"

#include <ATen/ops/empty.h>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/value_bytes.h"

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
  const std::string& key = checked_key(attribute, shape, dtype);
  const auto [wanted, first] = wanted_.try_emplace(key);
  if (first) wanted->second = empty_for_reading(shape, dtype);
  on_commit([value = wanted->second, take = std::move(take)] { take(value); });
}

void NodeSource::read_slice(std::string_view attribute, at::IntArrayRef full_shape,
                            const train::TensorSlice& slice, DType dtype, Take take) {
  const std::string& key = checked_key(attribute, full_shape, dtype);
  Tensor value = at::empty(slice.length, dtype);
  bundle_.read_slice(key, slice, value.data_ptr());
  on_commit([value = std::move(value), take = std::move(take)] { take(value); });
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

void NodeSource::fill() const {
  std::map<std::string, void*, std::less<>> places;
  for (const auto& [key, value] : wanted_) places.emplace(key, value.data_ptr());
  if (late_) {
    for (const auto& [key, place] : places) bundle_.read(key, place);
  } else {
    bundle_.read_all(places);
  }
  for (const auto& [key, value] : wanted_) {
    if (value.scalar_type() == DType::Bool) check_booleans(key, value);
  }
}

// Anything but 0 and 1 in a bool is undefined behaviour of whoever reads it.
void NodeSource::check_booleans(const std::string& key, const Tensor& value) const {
  for (const char byte : bytes_of(value)) {
    if (byte == 0 || byte == 1) continue;
    throw DataLossError(str("checkpoint '", bundle_.prefix(), "': ", readable_key(key),
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
