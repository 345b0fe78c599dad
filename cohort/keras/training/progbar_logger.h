// What a person sees of training, on stdout and in Keras's words.
//
//   Epoch 1/5
//   20/20 - 1s - loss: 0.4423 - 561ms/epoch - 28ms/step
//   Time: 71% compute, 12% update, 8% input, 5% exchange, 2% wait, 2% other
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/model/callback.h"

namespace cohort::keras::callbacks {

// fit, evaluate and predict add one of their own unless .verbose is 0. With verbose 1 on a terminal
// the line moves; its numbers are read at most every 50 ms, or, with several tasks, twenty times an
// epoch, since all of them read together. At the end of training it says where the time went,
// unless the program profiles by itself. Only the chief prints.
class COHORT_API ProgbarLogger : public Callback {
 public:
  ~ProgbarLogger() override;

  void on_train_begin() override;
  void on_train_end(const Logs& logs) override;
  void on_epoch_begin(int64_t epoch) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_train_interrupted() override;
  void on_test_begin() override;
  void on_test_end(const Logs& logs) override;
  void on_test_batch_end(int64_t batch, const Logs& logs) override;
  void on_predict_begin() override;
  void on_predict_end() override;
  void on_predict_batch_end(int64_t batch) override;

 private:
  std::optional<std::vector<std::string>> log_additions() const override {
    return internal::added_by<ProgbarLogger>(*this);
  }

  using Clock = std::chrono::steady_clock;

  void begin();
  // Whether the bar is to be drawn after this batch.
  bool is_due(int64_t batch) const;
  void draw(const Logs& logs);
  void finish(const Logs& logs, const char* unit);
  double seconds() const;

  void end_profile();

  bool in_fit_ = false;
  std::optional<uint64_t> profile_;
  bool speaks_ = true;
  bool moves_ = false;
  bool shared_ = false;
  int64_t first_ = 0;  // steps that were done before this process began
  int64_t done_ = 0;
  Clock::time_point start_;
  Clock::time_point drawn_;
};

}  // namespace cohort::keras::callbacks
