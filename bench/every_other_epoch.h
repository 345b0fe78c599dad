// A callback at work in half of the epochs of one fit, so that both halves see the same machine.
#pragma once

#include <cohort/cohort.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "timing.h"

namespace bench {

// The epochs after the first are pairs: with the callback, without; without, with; and so on. So a
// drift of the machine weighs on both alike.
inline int64_t epochs_of_pairs(int64_t pairs) { return 1 + 2 * pairs; }
inline int64_t epoch_with(int64_t pair) { return pair % 2 == 0 ? 1 + 2 * pair : 2 + 2 * pair; }
inline int64_t epoch_without(int64_t pair) { return pair % 2 == 0 ? 2 + 2 * pair : 1 + 2 * pair; }
inline bool is_with(int64_t epoch) { return epoch > 0 && epoch_with((epoch - 1) / 2) == epoch; }

// Hands the hooks of training to `inner` in the epochs with it, and its beginning and end. What it
// does at the end of an epoch comes there, or where it goes on in the background (a save) at the
// beginning, which is the end of the epoch before, so that none of it falls into an epoch without.
class EveryOtherEpoch : public cohort::keras::callbacks::Callback {
 public:
  EveryOtherEpoch(std::shared_ptr<Callback> inner, bool ends_at_the_beginning)
      : inner_(std::move(inner)), ends_at_the_beginning_(ends_at_the_beginning) {}

  // The longest that the end of an epoch has taken, in seconds.
  double longest_end() const { return longest_end_; }

  void on_train_begin() override {
    inner_->set_model(std::static_pointer_cast<cohort::keras::Model>(model().pointer()));
    inner_->set_params(params());
    inner_->on_train_begin();
  }
  void on_epoch_begin(int64_t epoch) override {
    at_work_ = is_with(epoch);
    if (!at_work_) return;
    if (ends_at_the_beginning_) end(epoch - 1, logs_);
    inner_->on_epoch_begin(epoch);
  }
  void on_train_batch_begin(int64_t batch) override {
    if (at_work_) inner_->on_train_batch_begin(batch);
  }
  void on_train_batch_end(int64_t batch, const cohort::keras::Logs& logs) override {
    if (at_work_) inner_->on_train_batch_end(batch, logs);
  }
  void on_epoch_end(int64_t epoch, cohort::keras::Logs& logs) override {
    if (ends_at_the_beginning_) {
      logs_ = logs;
    } else if (at_work_) {
      end(epoch, logs);
    }
  }
  void on_train_end(const cohort::keras::Logs& logs) override { inner_->on_train_end(logs); }

 private:
  void end(int64_t epoch, cohort::keras::Logs& logs) {
    const auto start = std::chrono::steady_clock::now();
    inner_->on_epoch_end(epoch, logs);
    longest_end_ = std::max(longest_end_, seconds_since(start));
  }

  const std::shared_ptr<Callback> inner_;
  const bool ends_at_the_beginning_;
  bool at_work_ = false;
  cohort::keras::Logs logs_;
  double longest_end_ = 0;
};

}  // namespace bench
