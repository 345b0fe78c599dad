// What a thread remembers of tensors that it made: the logits of probabilities, the masks of
// sequences. A tensor is known as the object it is; copies of a handle name the same one, views do
// not. A note stays as long as its tensor lives, however many there are.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Thread safety: none; each thread has its own.
class TensorNotes {
 public:
  bool empty() const { return entries_.empty(); }
  // Includes notes about tensors that are gone: at most an eighth of the others, and one.
  size_t size() const { return entries_.size(); }

  // In place of an earlier note. Takes a time that does not grow with the number of notes, on
  // average.
  void add(const Tensor& about, Tensor note) {
    drop_those_of_the_gone();
    entries_.insert_or_assign(
        about.unsafeGetTensorImpl(),
        Entry{Weak(about.getIntrusivePtr()), version_of(about), std::move(note)});
  }

  // Undefined where there is none.
  Tensor find(const Tensor& about) const {
    const auto found = entries_.find(about.unsafeGetTensorImpl());
    return found == entries_.end() ? Tensor() : found->second.note;
  }
  // The same, of a tensor that has not been changed in place since.
  Tensor find_of_unchanged(const Tensor& about) const {
    const auto found = entries_.find(about.unsafeGetTensorImpl());
    return found == entries_.end() || found->second.version != version_of(about)
               ? Tensor()
               : found->second.note;
  }

 private:
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  struct Entry {
    Weak alive;  // no other tensor gets its address as long as this is there
    int64_t version;
    Tensor note;
  };

  // Nobody counts the changes of tensors of inference mode.
  static int64_t version_of(const Tensor& tensor) {
    return tensor.is_inference() ? 0 : tensor._version();
  }

  // Each call pays for eight entries: it looks at all of up to eight, and of more the less often.
  void drop_those_of_the_gone() {
    constexpr size_t kEach = 8;
    if (++added_ * kEach < entries_.size()) return;
    added_ = 0;
    std::erase_if(entries_, [](const auto& entry) { return entry.second.alive.expired(); });
  }

  std::unordered_map<const c10::TensorImpl*, Entry> entries_;
  size_t added_ = 0;  // since then
};

}  // namespace cohort::internal
