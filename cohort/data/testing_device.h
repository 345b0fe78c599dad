// A device that does not answer in time, for tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/pass_interrupted.h"

namespace cohort::data {

// Gives 0 to size - 1; element `slow` only after *timeouts missed deadlines, each of which counts
// it down.
class SlowDevice final : public internal::DataNode {
 public:
  SlowDevice(int64_t size, int64_t slow, std::atomic<int>* timeouts)
      : DataNode("slow_device", {}), size_(size), slow_(slow), timeouts_(timeouts) {}

  internal::DataNodePtr with_inputs(std::vector<internal::DataNodePtr>) const override {
    return std::make_shared<SlowDevice>(size_, slow_, timeouts_);
  }
  StructureSpec element_spec() const override { return TensorSpec(std::vector<int64_t>{}, int64); }
  int64_t cardinality() const override { return kUnknownCardinality; }
  std::unique_ptr<internal::DataIterator> make_iterator(
      const internal::IteratorContext&) const override {
    return std::make_unique<Iterator>(*this);
  }

 private:
  class Iterator final : public internal::DataIterator {
   public:
    explicit Iterator(const SlowDevice& device)
        : size_(device.size_), slow_(device.slow_), timeouts_(device.timeouts_) {}
    bool next(Structure& out) override {
      if (position_ == slow_) {
        int left = *timeouts_;  // which the iterators of parallel stages share
        while (left > 0 && !timeouts_->compare_exchange_weak(left, left - 1)) {
        }
        if (left > 0) {
          internal::interrupt_pass(DeadlineExceededError("the device does not answer"));
        }
      }
      if (position_ >= size_) return false;
      out = Structure(position_++);
      return true;
    }
    void rewind(uint64_t) override { position_ = 0; }
    IteratorState save() override {
      IteratorState state;
      state.set_int("position", position_);
      return state;
    }
    void restore(const IteratorState& state) override {
      position_ = state.get_int("position", 0, size_);
    }

   private:
    const int64_t size_;
    const int64_t slow_;
    std::atomic<int>* const timeouts_;
    int64_t position_ = 0;
  };

  const int64_t size_;
  const int64_t slow_;
  std::atomic<int>* const timeouts_;
};

inline Dataset slow_device(int64_t size, int64_t slow, std::atomic<int>* timeouts) {
  return Dataset(std::make_shared<SlowDevice>(size, slow, timeouts));
}

}  // namespace cohort::data
