// What fit, evaluate and predict take besides the data. The fields have the order of Keras's
// arguments.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/keras/model/callback.h"
#include "cohort/keras/model/data.h"

namespace cohort::keras {

// What is printed to stdout: 0 nothing, 1 a bar that moves, 2 a line an epoch. AUTO is 1 where
// stdout is a terminal and the task is alone, else 2. One task speaks for a cluster.
inline constexpr int kVerboseAuto = -1;

// After every n-th epoch, or after the epochs of these numbers, counted from 1.
class ValidationFreq {
 public:
  ValidationFreq(int every) : every_(every) {}
  ValidationFreq(std::initializer_list<int64_t> epochs) : epochs_(epochs) {}

  bool is_due(int64_t epoch) const {
    for (const int64_t one : epochs_) {
      if (one == epoch + 1) return true;
    }
    return epochs_.empty() && (epoch + 1) % every_ == 0;
  }
  int every() const { return every_; }
  bool is_list() const { return !epochs_.empty(); }

 private:
  int every_ = 1;
  std::vector<int64_t> epochs_;
};

struct FitOptions {
  // Examples a step, over all replicas; of tensors only. Missing: 32.
  std::optional<int64_t> batch_size = std::nullopt;
  int64_t epochs = 1;  // the number of the last epoch: initial_epoch counts
  int verbose = kVerboseAuto;
  callbacks::CallbackArguments callbacks = {};
  // The last part of the tensors that is kept for validation, in [0, 1).
  double validation_split = 0;
  std::optional<Data> validation_data = std::nullopt;
  // A new order for each epoch; of tensors only.
  bool shuffle = true;
  // Factors of the losses of the examples of a class; of other classes 1.
  std::map<int64_t, double> class_weight = {};
  // For tensors only; a dataset has it as the third member of its elements.
  Structure sample_weight = Structure();
  int64_t initial_epoch = 0;
  // Missing or -1: until the data ends. If given (and not the length of the dataset), the next
  // epoch goes on where this one has stopped.
  std::optional<int64_t> steps_per_epoch = std::nullopt;
  std::optional<int64_t> validation_steps = std::nullopt;
  std::optional<int64_t> validation_batch_size = std::nullopt;  // missing: batch_size
  ValidationFreq validation_freq = 1;
};

struct EvaluateOptions {
  std::optional<int64_t> batch_size = std::nullopt;  // as fit's
  int verbose = kVerboseAuto;
  Structure sample_weight = Structure();        // as fit's
  std::optional<int64_t> steps = std::nullopt;  // missing: until the data ends
  callbacks::CallbackArguments callbacks = {};
};

struct PredictOptions {
  std::optional<int64_t> batch_size = std::nullopt;  // as fit's
  int verbose = kVerboseAuto;
  std::optional<int64_t> steps = std::nullopt;  // missing: until the data ends
  callbacks::CallbackArguments callbacks = {};
};

struct OnBatchOptions {
  Structure sample_weight = Structure();
  std::map<int64_t, double> class_weight = {};  // of train_on_batch
  // Whether the metrics count this batch only; else all since they were reset.
  bool reset_metrics = true;
};

}  // namespace cohort::keras
