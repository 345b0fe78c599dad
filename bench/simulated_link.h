// A network of a given speed between the tasks of one process.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "cohort/collective/forwarding_communicator.h"

namespace bench {

// Each call takes as long as the link needs for the bytes that this task brings; the processor is
// free meanwhile. One call at a time is on the link.
class SimulatedLink final : public cohort::collective::ForwardingCommunicator {
 public:
  // bytes_per_second: of every link that is made with it; 0 means no limit. Changed between steps.
  SimulatedLink(std::shared_ptr<cohort::collective::Communicator> backend,
                const double& bytes_per_second)
      : ForwardingCommunicator(std::move(backend)), bytes_per_second_(bytes_per_second) {}

 private:
  void before(cohort::collective::CallOptions&, int64_t bytes) override {
    if (bytes_per_second_ <= 0) return;
    // From when the last bytes left: sleeping longer than asked for does not add up.
    const auto now = std::chrono::steady_clock::now();
    free_at_ = std::max(free_at_, now - std::chrono::milliseconds(2)) +
               std::chrono::nanoseconds(
                   static_cast<int64_t>(1e9 * static_cast<double>(bytes) / bytes_per_second_));
    std::this_thread::sleep_until(free_at_);
  }

  const double& bytes_per_second_;
  std::chrono::steady_clock::time_point free_at_{};
};

}  // namespace bench
