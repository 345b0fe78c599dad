// What a thread remembers of the latest tensors that it made: the logits of probabilities, the masks of
// sequences. A tensor is known as the object it is; copies of a handle name the same one, views do not.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "cohort/core/tensor.h"

namespace cohort::internal {

// Thread safety: none; each thread has its own.
class TensorNotes {
 public:
  // most: how many tensors are remembered; of more, the first ones are forgotten.
  explicit TensorNotes(size_t most) : most_(most) {}

  bool empty() const { return entries_.empty(); }

  void add(const Tensor& about, Tensor note) {
    if (entries_.size() >= most_) {
      std::erase_if(entries_, [](const Entry& entry) { return entry.alive.expired(); });
    }
    if (entries_.size() >= most_) entries_.erase(entries_.begin());
    entries_.push_back(
        {about.unsafeGetTensorImpl(), Weak(about.getIntrusivePtr()), std::move(note)});
  }

  // The latest note; undefined where there is none.
  Tensor find(const Tensor& about) const {
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
      if (entry->about == about.unsafeGetTensorImpl()) return entry->note;
    }
    return Tensor();
  }

 private:
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  struct Entry {
    const c10::TensorImpl* about;  // no other tensor gets this address as long as `alive` is there
    Weak alive;
    Tensor note;
  };

  size_t most_;
  std::vector<Entry> entries_;
};

}  // namespace cohort::internal
