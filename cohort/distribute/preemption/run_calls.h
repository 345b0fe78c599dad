// How often PreemptionCheckpointHandler::run was called: an object of the checkpoint.
#pragma once

#include <ATen/ops/scalar_tensor.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

// Thread safety: any thread.
class RunCalls final : public train::Trackable {
 public:
  int64_t value() const { return value_.load(); }
  void add_one() { ++value_; }

  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override {
    return {{.attribute = train::kVariableValue,
             .full_name = "total_run_calls",
             .parts = {{Leaf(at::scalar_tensor(value(), int64))}}}};
  }
  void prepare_restore(train::RestoreSource& source) override {
    source.read(train::kVariableValue, {}, int64,
                [this](const Tensor& saved) { value_ = *saved.data_ptr<int64_t>(); });
  }

 private:
  std::atomic<int64_t> value_{0};
};

}  // namespace cohort::internal
