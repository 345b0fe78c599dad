// A line on a terminal that shows how far an epoch has come.
#pragma once

#include <chrono>
#include <cstdint>

namespace custom_training {

// Shows nothing where standard output is not a terminal.
class ProgressBar {
 public:
  // steps below 0: unknown.
  ProgressBar(int epoch, int64_t steps);
  // Clears the line.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  bool visible() const { return visible_; }
  void step(double loss, int64_t samples);

 private:
  using Clock = std::chrono::steady_clock;

  bool visible_;
  int epoch_;
  int64_t steps_;
  int64_t done_ = 0;
  int64_t samples_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_{};
};

}  // namespace custom_training
