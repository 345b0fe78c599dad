// How long the epochs of a fit take.
#pragma once

#include <cohort/cohort.h>

#include <chrono>
#include <memory>
#include <vector>

namespace bench {

// Of three epochs the last two count, each with all that its end entails: the time runs from the end of
// the first to that of the last. To be the last of the callbacks, so that it sees what others take.
class EpochClock : public cohort::keras::callbacks::Callback {
 public:
  static constexpr int64_t kEpochs = 3;

  void on_epoch_end(int64_t, cohort::keras::Logs&) override {
    ends_.push_back(std::chrono::steady_clock::now());
  }
  // Seconds; 0 in a task that has only served.
  double epoch() const {
    if (ends_.empty()) return 0;
    return std::chrono::duration<double>(ends_.back() - ends_.front()).count() / (kEpochs - 1);
  }

 private:
  std::vector<std::chrono::steady_clock::time_point> ends_;
};

}  // namespace bench
