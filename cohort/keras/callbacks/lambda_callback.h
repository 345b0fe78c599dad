// A callback of functions, for those who need no class.
//
//   keras::callbacks::LambdaCallback show({.on_epoch_end = [](int64_t epoch, keras::Logs& logs) {
//     std::cout << epoch << ": " << logs << '\n';
//   }});
#pragma once

#include <functional>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/keras/model/callback.h"

namespace cohort::keras::callbacks {

struct LambdaFunctions {
  std::function<void(int64_t epoch)> on_epoch_begin = {};
  std::function<void(int64_t epoch, Logs& logs)> on_epoch_end = {};
  std::function<void(int64_t batch)> on_train_batch_begin = {};
  std::function<void(int64_t batch, const Logs& logs)> on_train_batch_end = {};
  std::function<void()> on_train_begin = {};
  std::function<void(const Logs& logs)> on_train_end = {};
};

// Thread safety: as Callback.
class COHORT_API LambdaCallback : public Callback {
 public:
  explicit LambdaCallback(LambdaFunctions functions) : functions_(std::move(functions)) {}

  void on_epoch_begin(int64_t epoch) override {
    if (functions_.on_epoch_begin) functions_.on_epoch_begin(epoch);
  }
  void on_epoch_end(int64_t epoch, Logs& logs) override {
    if (functions_.on_epoch_end) functions_.on_epoch_end(epoch, logs);
  }
  void on_train_batch_begin(int64_t batch) override {
    if (functions_.on_train_batch_begin) functions_.on_train_batch_begin(batch);
  }
  void on_train_batch_end(int64_t batch, const Logs& logs) override {
    if (functions_.on_train_batch_end) functions_.on_train_batch_end(batch, logs);
  }
  void on_train_begin() override {
    if (functions_.on_train_begin) functions_.on_train_begin();
  }
  void on_train_end(const Logs& logs) override {
    if (functions_.on_train_end) functions_.on_train_end(logs);
  }

 private:
  LambdaFunctions functions_;
};

}  // namespace cohort::keras::callbacks
