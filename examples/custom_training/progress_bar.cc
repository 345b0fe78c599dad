#include "progress_bar.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace custom_training {

namespace {
constexpr int kWidth = 24;
constexpr auto kRedraw = std::chrono::milliseconds(50);
}  // namespace

ProgressBar::ProgressBar(int epoch, int64_t steps)
    : visible_(isatty(STDOUT_FILENO) == 1), epoch_(epoch), steps_(steps) {}

ProgressBar::~ProgressBar() {
  if (!visible_) return;
  std::fputs("\r\x1b[K", stdout);
  std::fflush(stdout);
}

void ProgressBar::step(double loss, int64_t samples) {
  ++done_;
  samples_ += samples;
  const auto now = Clock::now();
  if (!visible_ || (now - drawn_ < kRedraw && done_ != steps_)) return;
  drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const int filled = steps_ > 0 ? static_cast<int>(kWidth * done_ / steps_) : 0;
  const std::string bar = std::string(filled, '=') + std::string(kWidth - filled, '.');
  std::printf("\rEpoch %d [%s] step %lld/%lld, loss %.4f, %.0f samples/s\x1b[K", epoch_,
              bar.c_str(), static_cast<long long>(done_), static_cast<long long>(steps_), loss,
              seconds > 0 ? static_cast<double>(samples_) / seconds : 0.0);
  std::fflush(stdout);
}

}  // namespace custom_training
