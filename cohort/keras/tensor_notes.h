// What a thread remembers of the latest tensors that it made: the logits of probabilities, the masks of
// sequences. A tensor is known as the object it is; copies of a handle name the same one, views do not. The
// note of a tensor that is gone goes with the next that is added.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
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
    std::erase_if(entries_, [](const Entry& entry) { return entry.alive.expired(); });
    if (entries_.size() >= most_) entries_.erase(entries_.begin());
    entries_.push_back({about.unsafeGetTensorImpl(), Weak(about.getIntrusivePtr()),
                        version_of(about), std::move(note)});
  }

  // The latest note; undefined where there is none.
  Tensor find(const Tensor& about) const {
    const Entry* const entry = latest(about);
    return entry == nullptr ? Tensor() : entry->note;
  }
  // The same, of a tensor that has not been changed in place since.
  Tensor find_of_unchanged(const Tensor& about) const {
    const Entry* const entry = latest(about);
    return entry == nullptr || entry->version != version_of(about) ? Tensor() : entry->note;
  }

 private:
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  struct Entry {
    const c10::TensorImpl* about;  // no other tensor gets this address as long as `alive` is there
    Weak alive;
    int64_t version;
    Tensor note;
  };

  // Nobody counts the changes of tensors of inference mode.
  static int64_t version_of(const Tensor& tensor) {
    return tensor.is_inference() ? 0 : tensor._version();
  }
  const Entry* latest(const Tensor& about) const {
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
      if (entry->about == about.unsafeGetTensorImpl()) return &*entry;
    }
    return nullptr;
  }

  size_t most_;
  std::vector<Entry> entries_;
};

}  // namespace cohort::internal
