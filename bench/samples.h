// The samples that every side of the step benchmark trains on. bench/samples.py writes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>

namespace bench {

class Samples {
 public:
  // Reads NAME.shape, NAME.inputs and NAME.labels of the directory.
  // Errors: std::runtime_error (a file is missing or short).
  Samples(const std::string& directory, const std::string& name);

  // The `index`-th batch: inputs [size, ..] and labels int64 [size, ..]. Inputs repeat after kInputs
  // batches and labels after kLabels, so that no model can learn them by heart.
  // Errors: std::out_of_range (the size: batches overlap).
  std::pair<at::Tensor, at::Tensor> batch(int64_t index, int64_t size) const;

  static constexpr int64_t kInputs = 4;
  static constexpr int64_t kLabels = 3;
  static constexpr int64_t kBatches = kInputs * kLabels;
  // The sides' losses are compared in this many first steps.
  static constexpr int64_t kFirstSteps = 6;

 private:
  at::Tensor inputs_;
  at::Tensor labels_;
};

}  // namespace bench
