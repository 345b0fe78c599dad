// How long the epochs of a fit take.
#pragma once

#include <cohort/cohort.h>

#include <chrono>
#include <memory>
#include <vector>

namespace bench {

// Times each epoch from the end of the one before, with all that its end entails; the first epoch
// does not count. It has to be the last of the callbacks, so that it sees what others take.
class EpochClock : public cohort::keras::callbacks::Callback {
 public:
  // As many as a fit trains where the mean is asked for.
  static constexpr int64_t kEpochs = 3;

  void on_epoch_end(int64_t, cohort::keras::Logs&) override {
    ends_.push_back(std::chrono::steady_clock::now());
  }
  // Seconds of epoch `number`, from 1.
  double epoch(size_t number) const { return seconds(ends_.at(number) - ends_.at(number - 1)); }
  // Of all that count, the mean; 0 in a task that has only served.
  double epoch() const {
    if (ends_.empty()) return 0;
    return seconds(ends_.back() - ends_.front()) / static_cast<double>(ends_.size() - 1);
  }

 private:
  static double seconds(std::chrono::steady_clock::duration time) {
    return std::chrono::duration<double>(time).count();
  }

  std::vector<std::chrono::steady_clock::time_point> ends_;
};

}  // namespace bench
