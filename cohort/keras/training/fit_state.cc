#include "cohort/keras/training/fit_state.h"

#include <ATen/ops/tensor.h>

namespace cohort::internal {

std::vector<train::CheckpointValue> FitProgress::checkpoint_values() {
  const std::vector<int64_t> values = {epoch, step, static_cast<int64_t>(shuffle_seed)};
  return {{.attribute = train::kVariableValue,
           .parts = {{Leaf(at::tensor(values, at::dtype(at::kLong)))}}}};
}

void FitProgress::prepare_restore(train::RestoreSource& source) {
  source.read(train::kVariableValue, {3}, int64, [this](const Tensor& value) {
    const auto* numbers = value.data_ptr<int64_t>();
    epoch = numbers[0];
    step = numbers[1];
    shuffle_seed = static_cast<uint64_t>(numbers[2]);
  });
}

}  // namespace cohort::internal
