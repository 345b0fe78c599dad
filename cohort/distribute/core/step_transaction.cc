#include "cohort/distribute/core/step_transaction.h"

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"

namespace cohort::internal {

using collective::ReplicaRange;
using collective::SliceRange;

namespace {

// Stands before each object's state.
struct StateHeader {
  uint64_t object;
  uint64_t bytes;
};

StateHeader take_header(std::string_view& states) {
  StateHeader header{};
  if (states.size() >= sizeof header) {
    std::memcpy(&header, states.data(), sizeof header);
    states.remove_prefix(sizeof header);
    if (header.bytes <= states.size()) return header;
  }
  throw DataLossError("the states of a replica are cut off");
}

// Appends a header and the state of a replica, if there is one.
void append_state(uint64_t number, const Hosted& object, int replica, std::string& out) {
  const size_t start = out.size();
  out.resize(start + sizeof(StateHeader));
  object.write_state(replica, out);
  const StateHeader header{number, out.size() - start - sizeof(StateHeader)};
  if (header.bytes == 0) return out.resize(start);
  std::memcpy(out.data() + start, &header, sizeof header);
}

// The elements of `from` to their places in `to`.
void copy_part(const Tensor& from, const Tensor& to, SliceRange part) {
  if (part.begin >= part.end) return;
  const auto size = static_cast<int64_t>(from.element_size());
  std::memcpy(static_cast<char*>(to.data_ptr()) + part.begin * size,
              static_cast<const char*>(from.data_ptr()) + part.begin * size,
              static_cast<size_t>((part.end - part.begin) * size));
}

}  // namespace

void StepTransaction::add(Hosted& object, std::string_view name) {
  const std::lock_guard lock(mutex_);
  uint64_t key = uint64_t{crc32c(name)} << 32;
  while (!hosted_.emplace(key, &object).second) ++key;
  if (!open_) return;
  for (int id = own_.first; id < own_.last; ++id) {  // made in the step: it is put back as it began
    append_state(key, object, id, states_before_[static_cast<size_t>(id - own_.first)]);
  }
}

void StepTransaction::remove(Hosted& object) {
  const std::lock_guard lock(mutex_);
  std::erase_if(hosted_, [&](const auto& entry) { return entry.second == &object; });
}

void StepTransaction::forget(Undoable& object) {
  const std::lock_guard lock(mutex_);
  values_.erase(&object);
}

// In whatever order they are made: layers of a model that is restored are made in another one.
void StepTransaction::note_made(std::string_view what, const Tensor& value) {
  const std::lock_guard lock(mutex_);
  const uint64_t name = crc32c(what);
  const uint64_t bytes = crc32c(value.data_ptr(), value.nbytes());
  constexpr uint64_t kSpread = 0x9E3779B97F4A7C15u;
  made_.variables += (name + 1) * kSpread;
  made_.values += ((name << 32 | bytes) + 1) * kSpread;
  last_made_ = what;
}

void StepTransaction::begin(ReplicaRange own) {
  own_ = own;
  states_before_.resize(static_cast<size_t>(own.size()));
  for (int id = own.first; id < own.last; ++id) {
    std::string& state = states_before_[static_cast<size_t>(id - own.first)];
    state.clear();
    write_states(id, state);
  }
  ++step_;
  open_ = true;
}

void StepTransaction::end() { open_ = false; }

void StepTransaction::roll_back() {
  if (!open_) return;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [object, value] : values_) {
      if (value.step == step_ && value.kept != Kept::kNothing) put_back(*object, value);
      value.kept = Kept::kNothing;
    }
  }
  for (int id = own_.first; id < own_.last; ++id) {
    read_states(id, states_before_[static_cast<size_t>(id - own_.first)]);
  }
}

void StepTransaction::put_back(Undoable& object, const Value& value) {
  const Tensor& target = object.value_to_keep();
  if (value.kept == Kept::kAll) {
    copy_part(value.memory, target, {0, target.numel()});
  } else {
    for (const SliceRange& part : value.parts) copy_part(value.memory, target, part);
  }
  object.put_back();
}

// The caller holds mutex_.
StepTransaction::Value& StepTransaction::value_of(Undoable& object) {
  Value& value = values_[&object];
  if (!value.memory.defined()) value.memory = at::empty_like(object.value_to_keep());
  if (value.step != step_) {
    value.step = step_;
    value.kept = Kept::kNothing;
    value.parts.clear();
  }
  return value;
}

void StepTransaction::keep(Undoable& object) {
  char* const memory = keep_all_of(object);
  if (memory == nullptr) return;
  const Tensor& value = object.value_to_keep();
  std::memcpy(memory, value.data_ptr(), value.nbytes());
}

char* StepTransaction::keep_all_of(Undoable& object) {
  if (!open_) return nullptr;
  const std::lock_guard lock(mutex_);
  Value& value = value_of(object);
  const Kept before = std::exchange(value.kept, Kept::kAll);
  if (before == Kept::kAll) return nullptr;
  if (before == Kept::kParts) {
    keep_rest(object, value);
    return nullptr;
  }
  return static_cast<char*>(value.memory.data_ptr());
}

// Completes what is kept of an object whose parts that have changed are kept already.
void StepTransaction::keep_rest(Undoable& object, Value& value) {
  const Tensor& now = object.value_to_keep();
  std::sort(value.parts.begin(), value.parts.end(),
            [](const SliceRange& a, const SliceRange& b) { return a.begin < b.begin; });
  int64_t end = 0;
  for (const SliceRange& part : value.parts) {
    copy_part(now, value.memory, {end, part.begin});
    end = std::max(end, part.end);
  }
  copy_part(now, value.memory, {end, now.numel()});
}

void StepTransaction::keep_parts(Undoable& object, std::span<const SliceRange> parts) {
  if (!open_) return;
  const std::lock_guard lock(mutex_);
  Value& value = value_of(object);
  if (value.kept == Kept::kAll) return;
  if (std::exchange(value.kept, Kept::kParts) == Kept::kParts) {
    value.kept = Kept::kAll;
    return keep_rest(object, value);
  }
  for (const SliceRange& part : parts) copy_part(object.value_to_keep(), value.memory, part);
  value.parts.assign(parts.begin(), parts.end());
}

void StepTransaction::write_states(int replica, std::string& out) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, object] : hosted_) append_state(number, *object, replica, out);
}

void StepTransaction::read_states(int replica, std::string_view states) {
  const std::lock_guard lock(mutex_);
  while (!states.empty()) {
    const StateHeader header = take_header(states);
    const auto found = hosted_.find(header.object);
    if (found != hosted_.end()) found->second->read_state(replica, states.substr(0, header.bytes));
    states.remove_prefix(header.bytes);
  }
}

void StepTransaction::host(ReplicaRange range) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, object] : hosted_) object->host(range);
}

}  // namespace cohort::internal
